INSERT INTO boilerplate (repo_id, type, learned, texts, learned_at)
    VALUES (1, 'issue', '{"lines":[17293822569102704642],"titles":[5]}', 3, 1760000000000000),
        (2, 'issue', '{"lines":[],"titles":[]}', 0, 1760000000000000);
