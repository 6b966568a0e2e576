INSERT INTO repos (id, github_id, name, name_key, created_at) VALUES (1, 5000000001, 'Tide/Pool', 'tide/pool', 1760000000000000);
INSERT INTO repos (id, github_id, name, name_key, created_at) VALUES (2, NULL, 'quill/note', 'quill/note', 1760000000000001);
INSERT INTO items (id, repo_id, type, number, github_id, title, body, state, state_reason, merged, draft, author, assignees, labels,
    comments, review_comments, created_at, updated_at, closed_at, url, duplicate_of, changes, content_hash, content_version, last_synced_at, gone)
VALUES (1, 1, 'issue', 1, 6000000001, 'Sync stops', 'It stops.', 'open', NULL, FALSE, FALSE, 'mona', '["hubot"]', '["bug"]',
    3, 0, 1760000000000000, 1760000000000002, NULL, 'https://github.com/tide/pool/issues/1', NULL, NULL,
    '569363a54b503456ad0292a2db8e4466266a59b97b5077257bd58de6aa12b65e', 2, 1760000000000003, NULL);
INSERT INTO items (id, repo_id, type, number, github_id, title, body, state, state_reason, merged, draft, author, assignees, labels,
    comments, review_comments, created_at, updated_at, closed_at, url, duplicate_of, changes, content_hash, content_version, last_synced_at, gone)
VALUES (2, 1, 'pr', 2, NULL, 'Fix the sync', '', 'closed', NULL, TRUE, FALSE, NULL, NULL, '[]',
    0, 1, NULL, NULL, 1760000000000004, NULL, 1, '{"files":["src/sync.rs"],"diff":"+a\n-b\n"}',
    '6e8975d8f7553bf305a7dc8e540c28495fa917f6ec9764e30c0c2fe488727443', 1, NULL, 'deleted');
INSERT INTO maintainer_lists (repo_id, source, logins, written_at) VALUES (1, 'set', '["mona"]', 1760000000000000);
