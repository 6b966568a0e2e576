INSERT INTO console_sessions (id, github_id, login, operator, seal, made_at, seen_at, ends_at)
VALUES ('8d70d691c822d55638b6e7fd54cd94170c87d19eb1f628b757506ede5688d297', NULL, NULL, TRUE, 'b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184', 1760000000000000, 1760000000000001, 4102444800000000),
    ('50868f20258bbc9cce0da2719e8654c108733dd2f663b8737c574ec0ead93eb3', 583231, 'mona', FALSE, NULL, 1760000000000000, 1760000000000000, 1760604800000000);
INSERT INTO console_actions (id, at, by_login, operator, repo_id, action, subject)
VALUES (1, 1760000000000000, NULL, TRUE, NULL, 'sign-in', 'admin token'), (2, 1760000000000001, 'mona', FALSE, 1, 'pause', 'Tide/Pool');
INSERT INTO adjudications (id, repo_id, item_type, number, triage_id, decision_id, seed, drawn_at, verdict, score, target, word, by_login, at)
VALUES (1, 1, 'issue', 3, 1, NULL, 7, 1760000000000000, 'duplicate', 0.95, 1, 'same', 'mona', 1760000000000001),
    (2, 1, 'issue', 3, NULL, 2, 7, 1760000000000000, 'duplicate', 0.96, 1, NULL, NULL, NULL);
UPDATE close_run_items SET approved_by = 'mona' WHERE run_id = 2;
UPDATE overrides SET created_by = 'mona' WHERE id = 2;
INSERT INTO triage_records (id, repo_id, item_id, verdict, target_item_id, target_score, is_duplicate, confidence, reason, reasoning, effective_source,
    source_fallback_reason, provider, model, prompt_version, config_hash, content_version, embed_model, created_at, run_id)
VALUES (101, 1, 1, 'not_duplicate', NULL, NULL, FALSE, NULL, 'no_candidates', '', 'raw', NULL, 'local', 'evidence', 1, 'c0', 2, 'local', 1760000000000005, 'run-8');
