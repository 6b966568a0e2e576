INSERT INTO outbox (id, repo_id, number, kind, idempotency_key, payload, state, attempts, not_before, reason, created_at, updated_at, origin, item_type, origin_record, origin_commit)
VALUES (23001, 1, 1, 'unlabel', 'unlabel:7:issue:1', '{"unlabel":{"name":"possible-duplicate"}}', 'refused', 0, 1760000000000000, 'sample', 1760000000000000, 1760000000000000, 'undo_unlabel', 'issue', 7, NULL);
