INSERT INTO candidate_sets (id, item_id, representation, status, content_version, model, created_at)
VALUES (1, 1, 'raw', 'stale', 1, 'local', 1760000000000000), (2, 1, 'raw', 'fresh', 2, 'local', 1760000000000001);
INSERT INTO candidate_set_members (set_id, rank, item_id, score, parts) VALUES (2, 1, 2, 0.9132, '{"dense":0.9,"lexical":12.5}');
