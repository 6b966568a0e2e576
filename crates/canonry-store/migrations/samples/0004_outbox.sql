INSERT INTO outbox (id, repo_id, number, kind, idempotency_key, payload, state, attempts, step, not_before, lease_owner, lease_until, answer, reason, created_at, updated_at)
VALUES (1, 1, 1, 'comment', 'sample/comment', '{"comment":{"body":"Hello"}}', 'sent', 1, NULL, 1760000000000000, NULL, NULL, '{"comment":{"id":7000000001}}', NULL, 1760000000000000, 1760000000000001);
INSERT INTO outbox (id, repo_id, number, kind, idempotency_key, payload, state, attempts, step, not_before, lease_owner, lease_until, answer, reason, created_at, updated_at)
VALUES (2, 1, 1, 'label', 'sample/label', '{"label":{"name":"possible-duplicate"}}', 'pending', 1, '{"act":"set","phase":{"doubt":{"absent":0}},"tries":1,"unsure":1}', 1760000060000000, 'gone', 1760000300000000, NULL, NULL, 1760000000000000, 1760000000000001);
INSERT INTO outbox (id, repo_id, number, kind, idempotency_key, payload, state, attempts, step, not_before, lease_owner, lease_until, answer, reason, created_at, updated_at)
VALUES (3, 2, 5, 'reopen', 'sample/reopen', '"reopen"', 'refused', 0, NULL, 1760000000000000, NULL, NULL, NULL, 'drift:target_gone', 1760000000000000, 1760000000000001);
INSERT INTO content_writes (id, sent_at) VALUES (1, 1760000000000000);
INSERT INTO secrets (name, value, created_at) VALUES ('marker', '0123456789abcdef0123456789abcdef', 1760000000000000);
