INSERT INTO review_runs (id, repo_id, subject, base_sha, head_sha, state, lease_owner, lease_until, requested, full_requested, attempts, error, asked_at, created_at, finished_at)
VALUES (101, 1, 'pull/2', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'completed', 'run-6', 1760000000000900, FALSE, FALSE, 1, NULL, 1759999999999000, 1760000000000000, 1760000000000500),
    (102, 1, 'pull/2', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'cccccccccccccccccccccccccccccccccccccccc', 'running', 'run-7', 1760000000001900, TRUE, TRUE, 2, NULL, 1760000000000900, 1760000000001000, NULL),
    (103, 1, 'branch/topic', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'failed', NULL, NULL, FALSE, FALSE, 1, 'git is not there', 1760000000001000, 1760000000001000, 1760000000001001);
INSERT INTO reviews (run_id, repo_id, mode, reason, files_read, lines_read, shown, suppressed, fixed, notes, reviewers, model, cost_usd, completed_at)
VALUES (101, 1, 'full', 'no-prior-review', 3, 120, 1, 1, 0, '["one file was too large"]', '{"names":["llm"]}', 'a-model', 0.02, 1760000000000500);
INSERT INTO findings (id, repo_id, subject, key, fingerprint, path, line, severity, category, status, shown_as, said_inline, fixed, protected, latest, first_run, last_run, first_shown, first_confidence)
VALUES (201, 1, 'pull/2', 'fp-79e99c7e', 'fp-79e99c7e', 'src/sync.rs', 7, 'major', 'correctness', 'new', 'inline', TRUE, FALSE, TRUE,
    '{"title":"Missing error handling","message":"The result is dropped.","path":"src/sync.rs","lines":{"first":7,"last":8},"severity":"major","category":"correctness","fingerprint":"fp-79e99c7e","code":"00112233445566ff","around":null,"witnesses":[{"reviewer":"llm","rule":null,"key":"fp-79e99c7e"}],"partial":{},"tags":[],"fix":null}', 101, 101, TRUE, 80),
    (202, 1, 'pull/2', 'eslint:no-eval', 'fp-9d0f6809', 'src/sync.js', NULL, 'minor', 'style', 'new', 'suppressed', FALSE, FALSE, FALSE,
    '{"title":"Missing error handling","message":"The result is dropped.","path":"src/sync.rs","lines":{"first":7,"last":8},"severity":"major","category":"correctness","fingerprint":"fp-79e99c7e","code":"00112233445566ff","around":null,"witnesses":[{"reviewer":"llm","rule":"no-eval","key":"eslint:no-eval"}],"partial":{},"tags":[],"fix":null}', 101, 101, FALSE, 45);
INSERT INTO finding_sightings (finding_id, run_id, place, status, shown_as, hidden_by, confidence, grounded, said_inline, reported, code_unchanged, finding)
VALUES (201, 101, 0, 'new', 'inline', NULL, 80, TRUE, TRUE, TRUE, FALSE,
    '{"title":"Missing error handling","message":"The result is dropped.","path":"src/sync.rs","lines":{"first":7,"last":8},"severity":"major","category":"correctness","fingerprint":"fp-79e99c7e","code":"00112233445566ff","around":null,"witnesses":[{"reviewer":"llm","rule":null,"key":"fp-79e99c7e"}],"partial":{},"tags":[],"fix":null}'),
    (202, 101, 1, 'new', 'suppressed', 'pattern:glob:*eval*', 45, TRUE, FALSE, TRUE, FALSE,
    '{"title":"Missing error handling","message":"The result is dropped.","path":"src/sync.rs","lines":{"first":7,"last":8},"severity":"major","category":"correctness","fingerprint":"fp-79e99c7e","code":"00112233445566ff","around":null,"witnesses":[{"reviewer":"llm","rule":null,"key":"fp-79e99c7e"}],"partial":{},"tags":[],"fix":null}');
INSERT INTO suppression_log (run_id, finding_id, fingerprint, title, hidden_by, at) VALUES (101, 202, 'fp-9d0f6809', 'Unused variable', 'pattern:glob:*eval*', 1760000000000500);
INSERT INTO dismissals (id, finding_id, kind, dismisser, by_login, code, severity, category, at, withdrawn_at)
VALUES (1, 201, 'not_useful', 'maintainer', 'mona', '00112233445566ff', 'major', 'correctness', 1760000000000600, NULL), (2, 201, 'resolved', 'author', 'hubot', NULL, 'minor', 'style', 1760000000000600, 1760000000000700);
INSERT INTO feedback_reactions (repo_id, reaction_id, subject, finding_id, key, by_login, up, at, teaches, removed_at)
VALUES (1, 9000000001, 'pull/2', 201, 'fp-79e99c7e', 'mona', FALSE, 1760000000000700, TRUE, NULL),
    (1, 9000000002, 'pull/2', 201, 'fp-79e99c7e', 'hubot', TRUE, 1760000000000700, FALSE, NULL),
    (1, 9000000003, 'pull/2', 201, 'fp-79e99c7e', 'ada', FALSE, 1760000000000700, TRUE, 1760000000000800);
INSERT INTO feedback_clears (id, repo_id, key, by_login, at) VALUES (1, 1, NULL, 'mona', 1760000000000100), (2, 1, 'eslint:no-eval', 'mona', 1760000000000900);
INSERT INTO finding_memories (finding_id, repo_id, title, message, path, severity, category, model, vector, at)
VALUES (201, 1, 'Missing error handling', 'The result is dropped.', 'src/sync.rs', 'major', 'correctness', 'local', 'abcdabcd', 1760000000000500);
UPDATE repos SET shares_patterns = TRUE, shares_memories = TRUE WHERE id = 1;
INSERT INTO global_patterns (fingerprint, severity, category, shown, fixed, dismissed, thumbs_up, thumbs_down) VALUES ('fp-79e99c7e', 'major', 'correctness', 1, 0, 1, 0, 1);
