INSERT INTO deliveries (id, event, action, repo, number, payload, state, reason, received_at, finished_at)
VALUES ('72d3162e-cc78-11e3-81ab-4c9367dc0958', 'issues', 'opened', 'tide/pool', 1, '{"action":"opened","issue":{"number":1,"title":"a\u0000b"}}', 'queued', NULL, 1760000000000000, NULL);
INSERT INTO deliveries (id, event, action, repo, number, payload, state, reason, received_at, finished_at)
VALUES ('82d3162e-cc78-11e3-81ab-4c9367dc0958', 'issues', 'closed', 'tide/pool', 1, '{}', 'dead', 'the model was away', 1760000000000001, 1760000300000000);
INSERT INTO deliveries (id, event, action, repo, number, payload, state, reason, received_at, finished_at)
VALUES ('92d3162e-cc78-11e3-81ab-4c9367dc0958', 'star', 'created', 'tide/pool', NULL, '{}', 'ignored', 'nothing is done about star', 1760000000000002, 1760000000000002);
INSERT INTO jobs (id, delivery_id, key, repo, kind, payload, state, attempts, run_after, lease_owner, lease_until, error, created_at, finished_at)
VALUES (1, '72d3162e-cc78-11e3-81ab-4c9367dc0958', 'tide/pool#1', 'tide/pool', 'webhook', 'null', 'running', 1, 1760000000000000, 'gone', 1760000060000000, NULL, 1760000000000000, NULL);
INSERT INTO jobs (id, delivery_id, key, repo, kind, payload, state, attempts, run_after, lease_owner, lease_until, error, created_at, finished_at)
VALUES (2, '82d3162e-cc78-11e3-81ab-4c9367dc0958', 'tide/pool#1', 'tide/pool', 'webhook', 'null', 'dead', 8, 1760000200000000, NULL, NULL, 'the model was away', 1760000000000001, 1760000300000000);
INSERT INTO jobs (id, delivery_id, key, repo, kind, payload, state, attempts, run_after, lease_owner, lease_until, error, created_at, finished_at)
VALUES (3, NULL, 'tide/pool', 'tide/pool', 'sync', '{"full":true}', 'queued', 0, 1760000400000000, NULL, NULL, NULL, 1760000000000003, NULL);
