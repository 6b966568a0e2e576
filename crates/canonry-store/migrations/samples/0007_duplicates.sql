INSERT INTO items (id, repo_id, type, number, github_id, title, body, state, state_reason, merged, draft, author, assignees, labels,
    comments, review_comments, created_at, updated_at, closed_at, url, duplicate_of, changes, content_hash, content_version, last_synced_at, gone)
VALUES (3, 1, 'issue', 3, NULL, 'Sync hangs', 'It hangs.', 'closed', 'duplicate', FALSE, FALSE, 'hubot', '[]', '[]',
    0, 0, 1760000000000000, 1760000000000001, NULL, NULL, 1, NULL,
    'b9f8dca4ec1c0f1dd0a5e0a6a2a44cbb1d1f9b2e5b0f6d2f4bb0f7e3d7e1a001', 1, NULL, NULL);
UPDATE candidate_sets SET pairs = '[[1, 3, 0.9]]' WHERE id = 2;
INSERT INTO judge_decisions (id, repo_id, item_id, target_item_id, representation, candidate_set_id, origin, status, superseded_at, model_is_duplicate,
    confidence, reasoning, structure, reason, answer, provider, model, prompt_version, config_hash, input_hash, source_version, target_version,
    candidates, created_at, run_id)
VALUES (1, 1, 3, 1, 'raw', NULL, 'batch', 'accepted', 1760000000000002, TRUE, 0.93, 'The same stop.', '{"relation":"same_instance","certainty":"sure"}',
    NULL, '{"is_duplicate":true}', 'local', 'evidence', 1, 'c0', 'i0', 1, 1, '[{"number":1,"score":0.95,"content_version":1}]', 1760000000000000, 'run-1'),
    (2, 1, 3, 1, 'raw', NULL, 'batch', 'accepted', NULL, TRUE, 0.96, 'The same stop.', '{}', NULL, '{"is_duplicate":true}', 'local', 'evidence', 1,
    'c0', 'i1', 1, 2, '[{"number":1,"score":0.95,"content_version":2}]', 1760000000000002, 'run-2'),
    (3, 1, 1, NULL, 'raw', 2, 'batch', 'skipped', NULL, NULL, NULL, NULL, '{}', 'no_candidates', NULL, 'local', 'evidence', 1, 'c0', '', 2, NULL, '[]',
    1760000000000003, 'run-2');
INSERT INTO overrides (id, repo_id, type, kind, item_number, other_number, note, created_at, removed_at)
VALUES (1, 1, 'issue', 'not_duplicate', 3, 1, 'undone', 1760000000000000, 1760000000000001), (2, 1, 'issue', 'canonical', 1, NULL, NULL, 1760000000000002, NULL);
INSERT INTO canonicals (repo_id, type, representation, item_number, canonical_number, since)
VALUES (1, 'issue', 'raw', 1, 1, 1760000000000000), (1, 'issue', 'raw', 3, 1, 1760000000000000);
INSERT INTO close_runs (id, repo_id, mode, plan_id, representation, target_policy, min_close, config_hash, created_at, finished_at, run_id)
VALUES (1, 1, 'plan', NULL, 'raw', 'canonical-only', 0.9, 'c0', 1760000000000003, NULL, 'run-3'),
    (2, 1, 'apply', 1, 'raw', 'canonical-only', 0.9, 'c0', 1760000000000004, 1760000000000006, 'run-4');
INSERT INTO close_run_items (run_id, item_id, target_item_id, action, skip_reason, confidence, approved, approved_at, evidence, snapshot, result,
    objected, result_reason, result_at, outbox_key)
VALUES (1, 3, 1, 'close', NULL, 0.96, TRUE, 1760000000000004, '["both name sync"]', '{}', NULL, FALSE, NULL, NULL, NULL),
    (2, 3, 1, 'close', NULL, 0.96, TRUE, 1760000000000004, '["both name sync"]', '{}', 'applied', FALSE, NULL, 1760000000000005, 'close/2/3');
INSERT INTO close_leases (repo_id, owner, until) VALUES (1, 'run-4', 1760000000000007);
INSERT INTO triage_records (id, item_id, verdict, target_item_id, target_score, is_duplicate, confidence, reason, reasoning, effective_source,
    source_fallback_reason, provider, model, prompt_version, config_hash, content_version, embed_model, created_at, run_id)
VALUES (1, 3, 'duplicate', 1, 0.95, TRUE, 0.96, 'duplicate', 'The same stop.', 'raw', 'intent_extraction_failed', 'local', 'evidence', 1, 'c0', 1,
    'local', 1760000000000000, 'run-1');
INSERT INTO triage_candidates (triage_id, rank, item_id, score, parts, state, judged) VALUES (1, 1, 1, 0.95, '{"dense":0.95}', 'open', TRUE);
INSERT INTO judge_audit_runs (id, repo_id, representation, seed, sample_size, cheap_provider, cheap_model, strong_provider, strong_model, min_edge,
    created_at, run_id)
VALUES (1, 1, 'raw', 7, 1, 'local', 'evidence', 'openai', 'some-model', 0.85, 1760000000000000, 'run-5');
INSERT INTO judge_audit_run_items (run_id, item_id, candidate_set_id, candidates, cheap_status, cheap_target, cheap_confidence, cheap_reason,
    strong_status, strong_target, strong_confidence, strong_reason, class)
VALUES (1, 3, NULL, '[{"number":1,"rank":1,"score":0.95}]', 'accepted', 1, 0.96, NULL, 'rejected', 1, 0.8, 'below_min_edge', 'fp');
INSERT INTO llm_calls (id, repo_id, run_id, purpose, provider, model, input_tokens, output_tokens, cost_usd, latency_ms, outcome, error, created_at)
VALUES (1, 1, 'run-5', 'audit', 'openai', 'some-model', 1200, 80, 0.0021, 900, 'answered', NULL, 1760000000000000),
    (2, NULL, 'run-5', 'audit', 'openai', 'some-model', NULL, NULL, NULL, 30000, 'failed', 'timed out', 1760000000000001);
