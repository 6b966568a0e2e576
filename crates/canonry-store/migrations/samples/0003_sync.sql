INSERT INTO sync_progress (repo_id, watermark, finished_at, swept_at) VALUES (1, 1760000000000000, NULL, NULL);
INSERT INTO etags (repo_id, url, etag, written_at) VALUES (1, '/repos/tide/pool', 'W/"abc"', 1760000000000000);
INSERT INTO outcome_events (id, item_id, delivery_id, kind, state_reason, actor, duplicate_of, occurred_at)
VALUES (1001, 1, 'sync:tide/pool#1:2026-01-01T00:00:00Z', 'closed', 'duplicate', NULL, 2, 1760000000000000);
