INSERT INTO posted_findings (id, repo_id, number, run_id, finding_id, comment_id, posted_at, settled, settled_at)
VALUES (1, 1, 2, 101, 201, 8000000001, 1760000000001000, NULL, NULL), (2, 1, 2, 101, 202, 8000000002, 1760000000001000, 'resolved', 1760000000002000);
INSERT INTO brakes (id, repo_id, kind, set_by, why, set_at, lifted_by, lifted_at)
VALUES (1, 1, 'pause', 'mona', 'asked for in #1', 1760000000001000, NULL, NULL), (2, 1, 'breaker', NULL, '3 objections in 7 days', 1760000000001000, 'mona', 1760000000002000);
INSERT INTO graces (id, repo_id, item_id, target_item_id, triage_id, comment_key, approved_by, content_version, began_at, due_at, state, reason, close_run_id, ended_at)
VALUES (1, 1, 1, 3, NULL, 'triage/1#1/comment/1', NULL, 1, 1760000000001000, 1760000259201000, 'waiting', NULL, NULL, NULL);
INSERT INTO objections (id, repo_id, item_id, close_key, kind, by_login, at) VALUES (1, 1, 1, 'close:1:issue:1', 'reopened', 'mona', 1760000000001000);
INSERT INTO mentions (id, repo_id, place, comment_id, number, by_login, command, outcome, at)
VALUES (1, 1, 'issue', 7000000001, 1, 'mona', 'pause', 'done', 1760000000001000), (2, 1, 'review', 7000000001, 2, 'hubot', NULL, 'not_understood', 1760000000001000);
INSERT INTO llm_calls (id, repo_id, run_id, purpose, provider, model, input_tokens, output_tokens, cost_usd, latency_ms, outcome, error, created_at)
VALUES (91, 1, 'job-7-0', 'review', 'openai', 'm', 1000, 10, 0.02, 900, 'answered', NULL, 1760000000001000);
UPDATE review_runs SET base_branch = 'main' WHERE id = 101;
