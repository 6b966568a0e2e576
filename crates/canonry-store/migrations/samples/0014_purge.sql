-- A second repository with something in every table.
INSERT INTO items (id, repo_id, type, number, github_id, title, body, state, state_reason, merged, draft, author, assignees, labels,
    comments, review_comments, created_at, updated_at, closed_at, url, duplicate_of, changes, content_hash, content_version, last_synced_at, gone)
VALUES (2001, 2, 'issue', 1, 6000002001, 'Ink runs', 'It runs.', 'open', NULL, FALSE, FALSE, 'ada', '[]', '[]',
    0, 0, 1760000000000000, 1760000000000001, NULL, NULL, NULL, NULL,
    'c9f8dca4ec1c0f1dd0a5e0a6a2a44cbb1d1f9b2e5b0f6d2f4bb0f7e3d7e1a001', 1, 1760000000000003, NULL),
    (2002, 2, 'issue', 2, 6000002002, 'Ink runs again', 'It runs again.', 'closed', 'duplicate', FALSE, FALSE, 'ada', '[]', '[]',
    0, 0, 1760000000000000, 1760000000000001, 1760000000000002, NULL, 1, NULL,
    'd9f8dca4ec1c0f1dd0a5e0a6a2a44cbb1d1f9b2e5b0f6d2f4bb0f7e3d7e1a001', 1, 1760000000000003, NULL);
INSERT INTO maintainer_lists (repo_id, source, logins, written_at) VALUES (2, 'set', '["ada"]', 1760000000000000);
INSERT INTO candidate_sets (id, item_id, representation, status, content_version, model, created_at) VALUES (2001, 2002, 'raw', 'fresh', 1, 'local', 1760000000000000);
INSERT INTO candidate_set_members (set_id, rank, item_id, score, parts) VALUES (2001, 1, 2001, 0.95, '{"dense":0.95}');
INSERT INTO sync_progress (repo_id, watermark, finished_at, swept_at) VALUES (2, 1760000000000000, NULL, NULL);
INSERT INTO etags (repo_id, url, etag, written_at) VALUES (2, '/repos/quill/note', 'W/"def"', 1760000000000000);
INSERT INTO outcome_events (id, item_id, delivery_id, kind, state_reason, actor, duplicate_of, occurred_at)
VALUES (2001, 2002, 'sync:quill/note#2:2026-01-01T00:00:00Z', 'closed', 'duplicate', 'ada', 1, 1760000000000002);
INSERT INTO embeddings (item_id, representation, model, dim, vector, embedded_hash, embedded_at)
VALUES (2001, 'raw', 'local', 2, '[1.0,.5]', 'c9f8dca4ec1c0f1dd0a5e0a6a2a44cbb1d1f9b2e5b0f6d2f4bb0f7e3d7e1a001', 1760000000000000),
    (2001, 'raw', 'former', 2, '[.5,1.0]', 'c9f8dca4ec1c0f1dd0a5e0a6a2a44cbb1d1f9b2e5b0f6d2f4bb0f7e3d7e1a001', 1760000000000000);
INSERT INTO token_vectors (item_id, representation, model, embedded_hash, vectors)
VALUES (2001, 'raw', 'local', 'c9f8dca4ec1c0f1dd0a5e0a6a2a44cbb1d1f9b2e5b0f6d2f4bb0f7e3d7e1a001', ' abcdefghijklmnopqrstuvwxyzABCDEF'),
    (2001, 'raw', 'former', 'c9f8dca4ec1c0f1dd0a5e0a6a2a44cbb1d1f9b2e5b0f6d2f4bb0f7e3d7e1a001', ' abcdefghijklmnopqrstuvwxyzABCDEF');
INSERT INTO intent_cards (item_id, extractor, model, schema_version, prompt_version, render_version, source_hash, source_version, status, card, failure, created_at)
VALUES (2001, 'openai', 'some-model', 1, 1, 1, 'c9f8dca4ec1c0f1dd0a5e0a6a2a44cbb1d1f9b2e5b0f6d2f4bb0f7e3d7e1a001', 1, 'failed', NULL, 'the answer is empty', 1760000000000001);
INSERT INTO judge_decisions (id, repo_id, item_id, target_item_id, representation, candidate_set_id, origin, status, superseded_at, model_is_duplicate,
    confidence, reasoning, structure, reason, answer, provider, model, prompt_version, config_hash, input_hash, source_version, target_version,
    candidates, created_at, run_id)
VALUES (2001, 2, 2002, 2001, 'raw', 2001, 'batch', 'accepted', NULL, TRUE, 0.97, 'The same ink.', '{}', NULL, '{"is_duplicate":true}', 'local', 'evidence', 1,
    'c0', 'i2', 1, 1, '[{"number":1,"score":0.95,"content_version":1}]', 1760000000000002, 'run-21');
INSERT INTO overrides (id, repo_id, type, kind, item_number, other_number, note, created_at, removed_at, created_by)
VALUES (2001, 2, 'issue', 'duplicate', 2, 1, NULL, 1760000000000000, NULL, 'ada');
INSERT INTO canonicals (repo_id, type, representation, item_number, canonical_number, since) VALUES (2, 'issue', 'raw', 2, 1, 1760000000000000);
INSERT INTO close_runs (id, repo_id, mode, plan_id, representation, target_policy, min_close, config_hash, created_at, finished_at, run_id)
VALUES (2001, 2, 'plan', NULL, 'raw', 'canonical-only', 0.9, 'c0', 1760000000000003, NULL, 'run-22'),
    (2002, 2, 'apply', 2001, 'raw', 'canonical-only', 0.9, 'c0', 1760000000000004, 1760000000000006, 'run-23');
INSERT INTO close_run_items (run_id, item_id, target_item_id, action, skip_reason, confidence, approved, approved_at, evidence, snapshot, result,
    objected, result_reason, result_at, outbox_key, approved_by)
VALUES (2001, 2002, 2001, 'close', NULL, 0.97, TRUE, 1760000000000004, '[]', '{}', NULL, FALSE, NULL, NULL, NULL, 'ada'),
    (2002, 2002, 2001, 'close', NULL, 0.97, TRUE, 1760000000000004, '[]', '{}', 'applied', FALSE, NULL, 1760000000000005, 'close/2002/2', 'ada');
INSERT INTO close_leases (repo_id, owner, until) VALUES (2, 'run-23', 1760000000000007);
INSERT INTO triage_records (id, repo_id, item_id, verdict, target_item_id, target_score, is_duplicate, confidence, reason, reasoning, effective_source,
    source_fallback_reason, provider, model, prompt_version, config_hash, content_version, embed_model, created_at, run_id)
VALUES (2001, 2, 2002, 'duplicate', 2001, 0.95, TRUE, 0.97, 'duplicate', 'The same ink.', 'raw', NULL, 'local', 'evidence', 1, 'c0', 1, 'local', 1760000000000000, 'run-24');
INSERT INTO triage_candidates (triage_id, rank, item_id, score, parts, state, judged) VALUES (2001, 1, 2001, 0.95, '{"dense":0.95}', 'open', TRUE);
INSERT INTO triage_actions (triage_id, mode, component, threshold, source, action, reason, comment_key, created_at)
VALUES (2001, 'shadow', NULL, 85, 'configured', 'recorded', 'shadow', NULL, 1760000000000001);
INSERT INTO triage_comment_reactions (item_id, comment_id, up, down, mixed, component, synced_at) VALUES (2002, 7000002002, 1, 0, 0, NULL, 1760000000000000);
INSERT INTO issue_outcomes (item_id, repo_id, triage_id, outcome, lesson, lesson_kind, level, component, updated_at)
VALUES (2002, 2, 2001, '{"outcome":{"kind":"duplicate","of":1},"evidence":"state_reason","decided_by":null,"at":"2025-10-09T08:53:20.00001Z","component":null,"cluster":[1,2]}',
    '{"kind":"confirmed","prediction":{"target":1,"score":0.95}}', 'confirmed', 95, NULL, 1760000000000010);
INSERT INTO threshold_settings (repo_id, rule, configured, wanted, updated_at) VALUES (2, 'precision-target', 85, 0.8, 1760000000000000);
INSERT INTO threshold_adjustments (id, repo_id, component, previous_threshold, new_threshold, alpha, beta, sample_count, adjusted_at)
VALUES (2001, 2, NULL, 85, 90, 3.0, 9.0, 10, 1760000000000000);
INSERT INTO judge_audit_runs (id, repo_id, representation, seed, sample_size, cheap_provider, cheap_model, strong_provider, strong_model, min_edge, created_at, run_id)
VALUES (2001, 2, 'raw', 7, 1, 'local', 'evidence', 'openai', 'some-model', 0.85, 1760000000000000, 'run-25');
INSERT INTO judge_audit_run_items (run_id, item_id, candidate_set_id, candidates, cheap_status, cheap_target, cheap_confidence, cheap_reason,
    strong_status, strong_target, strong_confidence, strong_reason, class)
VALUES (2001, 2002, 2001, '[{"number":1,"rank":1,"score":0.95}]', 'accepted', 1, 0.97, NULL, 'accepted', 1, 0.9, NULL, 'tp');
INSERT INTO adjudications (id, repo_id, item_type, number, triage_id, decision_id, seed, drawn_at, verdict, score, target, word, by_login, at)
VALUES (2001, 2, 'issue', 2, 2001, NULL, 7, 1760000000000000, 'duplicate', 0.95, 1, 'same', 'ada', 1760000000000001),
    (2002, 2, 'issue', 2, NULL, 2001, 7, 1760000000000000, 'duplicate', 0.97, 1, NULL, NULL, NULL);
INSERT INTO graces (id, repo_id, item_id, target_item_id, triage_id, comment_key, approved_by, content_version, began_at, due_at, state, reason, close_run_id, ended_at)
VALUES (2001, 2, 2002, 2001, 2001, NULL, 'ada', 1, 1760000000001000, 1760000259201000, 'closed', NULL, 2001, 1760000259201000);
INSERT INTO objections (id, repo_id, item_id, close_key, kind, by_login, at) VALUES (2001, 2, 2002, 'close:2:issue:2', 'reaction', 'ada', 1760000000001000);
INSERT INTO review_runs (id, repo_id, subject, base_sha, head_sha, state, lease_owner, lease_until, requested, full_requested, attempts, error, asked_at, created_at, finished_at)
VALUES (2001, 2, 'branch/ink', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'completed', 'run-26', 1760000000000900, FALSE, FALSE, 1, NULL, 1759999999999000, 1760000000000000, 1760000000000500);
INSERT INTO reviews (run_id, repo_id, mode, reason, files_read, lines_read, shown, suppressed, fixed, notes, reviewers, model, cost_usd, completed_at)
VALUES (2001, 2, 'full', 'no-prior-review', 1, 12, 1, 0, 0, '[]', '{"names":["builtin"]}', NULL, 0.0, 1760000000000500);
INSERT INTO findings (id, repo_id, subject, key, fingerprint, path, line, severity, category, status, shown_as, said_inline, fixed, protected, latest, first_run, last_run, first_shown, first_confidence)
VALUES (2001, 2, 'branch/ink', 'fp-79e99c7e', 'fp-79e99c7e', 'src/ink.rs', 7, 'minor', 'style', 'new', 'inline', TRUE, FALSE, FALSE,
    '{"title":"Missing error handling","message":"The result is dropped.","path":"src/ink.rs","lines":{"first":7,"last":8},"severity":"minor","category":"style","fingerprint":"fp-79e99c7e","code":"00112233445566ff","around":null,"witnesses":[{"reviewer":"llm","rule":null,"key":"fp-79e99c7e"}],"partial":{},"tags":[],"fix":null}', 2001, 2001, TRUE, 50);
INSERT INTO finding_sightings (finding_id, run_id, place, status, shown_as, hidden_by, confidence, grounded, said_inline, reported, code_unchanged, finding)
VALUES (2001, 2001, 0, 'new', 'inline', NULL, 50, TRUE, TRUE, TRUE, FALSE,
    '{"title":"Missing error handling","message":"The result is dropped.","path":"src/ink.rs","lines":{"first":7,"last":8},"severity":"minor","category":"style","fingerprint":"fp-79e99c7e","code":"00112233445566ff","around":null,"witnesses":[{"reviewer":"llm","rule":null,"key":"fp-79e99c7e"}],"partial":{},"tags":[],"fix":null}');
INSERT INTO suppression_log (run_id, finding_id, fingerprint, title, hidden_by, at) VALUES (2001, 2001, 'fp-79e99c7e', 'Missing error handling', 'feedback', 1760000000000500);
INSERT INTO dismissals (id, finding_id, kind, dismisser, by_login, code, severity, category, at, withdrawn_at)
VALUES (2001, 2001, 'wont_fix', 'maintainer', 'ada', '00112233445566ff', 'minor', 'style', 1760000000000600, NULL);
INSERT INTO feedback_reactions (repo_id, reaction_id, subject, finding_id, key, by_login, up, at, teaches, removed_at)
VALUES (2, 9000002001, 'branch/ink', 2001, 'fp-79e99c7e', 'ada', TRUE, 1760000000000700, TRUE, NULL);
INSERT INTO feedback_clears (id, repo_id, key, by_login, at) VALUES (2001, 2, NULL, 'ada', 1760000000000100);
INSERT INTO finding_memories (finding_id, repo_id, title, message, path, severity, category, model, vector, at)
VALUES (2001, 2, 'Missing error handling', 'The result is dropped.', 'src/ink.rs', 'minor', 'style', 'local', 'abcdabcd', 1760000000000500);
INSERT INTO posted_findings (id, repo_id, number, run_id, finding_id, comment_id, posted_at, settled, settled_at)
VALUES (2001, 2, 2, 2001, 2001, 8000002001, 1760000000001000, NULL, NULL);
INSERT INTO llm_calls (id, repo_id, run_id, purpose, provider, model, input_tokens, output_tokens, cost_usd, latency_ms, outcome, error, created_at)
VALUES (2001, 2, 'run-27', 'judge', 'openai', 'm', 1000, 10, 0.02, 900, 'answered', NULL, 1760000000001000);
INSERT INTO mentions (id, repo_id, place, comment_id, number, by_login, command, outcome, at) VALUES (2001, 2, 'issue', 7000002001, 1, 'ada', 'why', 'done', 1760000000001000);
INSERT INTO brakes (id, repo_id, kind, set_by, why, set_at, lifted_by, lifted_at) VALUES (2001, 2, 'pause', 'ada', 'a release', 1760000000001000, 'ada', 1760000000002000);
INSERT INTO console_actions (id, at, by_login, operator, repo_id, action, subject) VALUES (2001, 1760000000000001, 'ada', FALSE, 2, 'pause', 'quill/note');
