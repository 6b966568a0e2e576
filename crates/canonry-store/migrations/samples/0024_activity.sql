-- Only indexes are new; the row says that somebody used this version.
INSERT INTO console_actions (id, at, by_login, operator, repo_id, action, subject) VALUES (24001, 1760000000000002, NULL, TRUE, 2, 'sync', 'quill/note');
