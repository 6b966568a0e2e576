INSERT INTO index_versions (repo_id, epoch, version, relisted, boilerplate) VALUES (1, 4711, 9, 3, 2), (2, 815, 1, 1, 1);
INSERT INTO item_changes (repo_id, type, number, version) VALUES (1, 'issue', 1, 9), (1, 'pr', 2, 4), (2, 'issue', 1, 1);
