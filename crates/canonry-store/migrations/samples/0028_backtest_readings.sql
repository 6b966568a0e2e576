INSERT INTO adjudications (id, repo_id, item_type, number, triage_id, decision_id, seed, drawn_at, verdict, score, target, word, by_login, at)
VALUES (28001, 1, 'issue', 3, NULL, NULL, 1, 1760000000000000, 'maybe_duplicate', 0.88, 1, 'different', NULL, 1760000000000002);
