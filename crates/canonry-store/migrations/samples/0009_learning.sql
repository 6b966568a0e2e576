INSERT INTO outcome_events (id, item_id, delivery_id, kind, state_reason, actor, duplicate_of, occurred_at, by_whom, in_body, comment_id, labels, cluster)
VALUES (101, 3, 'a2d3162e-cc78-11e3-81ab-4c9367dc0958', 'closed', 'duplicate', 'mona', 1, 1760000000000010, 'maintainer', 1, NULL, '["area/sync"]', '[1,2]'),
    (102, 3, 'b2d3162e-cc78-11e3-81ab-4c9367dc0958', 'commented', NULL, 'mona', 1, 1760000000000011, 'maintainer', NULL, 8000000001, NULL, '[]');
INSERT INTO issue_outcomes (item_id, repo_id, triage_id, outcome, lesson, lesson_kind, level, component, updated_at)
VALUES (3, 1, 1, '{"outcome":{"kind":"duplicate","of":1},"evidence":"state_reason","decided_by":null,"at":"2025-10-09T08:53:20.00001Z","component":"sync","cluster":[1,2]}',
    '{"kind":"confirmed","prediction":{"target":1,"score":0.95}}', 'confirmed', 95, 'sync', 1760000000000010);
INSERT INTO threshold_settings (repo_id, rule, configured, wanted, updated_at) VALUES (1, 'precision-target', 90, 0.8, 1760000000000000);
INSERT INTO threshold_adjustments (id, repo_id, component, previous_threshold, new_threshold, alpha, beta, sample_count, adjusted_at)
VALUES (1, 1, NULL, 85, NULL, 3.0, 9.0, 10, 1760000000000000), (2, 1, 'sync', NULL, 90, 12.0, 2.0, 20, 1760000000000001);
INSERT INTO triage_comment_reactions (item_id, comment_id, up, down, mixed, component, synced_at) VALUES (3, 7000000002, 0, 2, 1, 'sync', 1760000000000000);
INSERT INTO triage_actions (triage_id, mode, component, threshold, source, action, reason, comment_key, created_at)
VALUES (1, 'suggest', 'sync', 85, 'configured', 'commented', 'speak', 'triage:1:issue:3:1', 1760000000000001);
UPDATE deliveries SET payload = '', emptied = TRUE WHERE event = 'star';
UPDATE jobs SET begun_at = 1760000000000000 WHERE state = 'running';
UPDATE repos SET access = 'suspended', access_since = 1760000000000002, installation_id = 44 WHERE id = 2;
INSERT INTO repo_settings (repo_id, text, fetched_at) VALUES (1, 'triage: {mode: suggest}', 1760000000000000), (2, NULL, 0);
INSERT INTO schedules (name, last_fired_at) VALUES ('sync', 1760000000000000);
