INSERT INTO outbox (id, repo_id, number, kind, idempotency_key, payload, state, attempts, step, not_before, lease_owner, lease_until, answer, reason, created_at, updated_at, priority)
VALUES (16001, 1, 1, 'reopen', 'sample/correction', '"reopen"', 'pending', 0, NULL, 1760000000000000, NULL, NULL, NULL, NULL, 1760000000000000, 1760000000000000, 'correction');
