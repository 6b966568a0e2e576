INSERT INTO overrides (id, repo_id, type, kind, item_number, other_number, created_at, created_by)
VALUES (16, 1, 'issue', 'excluded', 3, 1, 1760000000000002, 'mona');
UPDATE close_runs SET stop_asked_at = 1760000000000005, stop_asked_by = 'mona' WHERE id = 1;
UPDATE feedback_clears SET undone_at = 1760000000000901, undone_by = 'mona' WHERE id = 2;
