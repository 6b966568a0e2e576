UPDATE items SET base_branch = 'main' WHERE id = 2;
UPDATE repos SET default_branch = 'main' WHERE id = 1;
INSERT INTO triage_records (id, repo_id, item_id, verdict, target_item_id, target_score, is_duplicate, confidence, reason, reasoning, effective_source,
    source_fallback_reason, provider, model, prompt_version, config_hash, content_version, embed_model, created_at, run_id)
VALUES (26002, 2, 2001, 'not_duplicate', NULL, NULL, FALSE, NULL, 'no_candidates', '', 'raw', NULL, 'local', 'evidence', 1, 'c0', 1, 'local', 1760000000000005, 'run-26');
INSERT INTO fix_matches (triage_id, report_item_id, kind, score, confidence, fix, merged_at, release)
VALUES (101, 3, 'fixed', 0.91, 0.95, 2, 1760000000000004, 'v1.4'),
    (26002, 2002, 'possible_regression', 0.93, NULL, 3, 1760000000000004, NULL);
