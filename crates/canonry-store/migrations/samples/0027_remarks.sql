INSERT INTO remarks (id, repo_id, subject, comment_id, author, is_bot, path, line, link, said_at, finding_id, agreeing, outcome, seen_at)
VALUES (1, 1, 'pull/2', 8100000001, 'rabbit[bot]', TRUE, 'src/sync.rs', 7, 'https://github.com/quill/note/pull/2#discussion_r8100000001', 1760000000001000, 201, 2, 'right', 1760000000002000),
    (2, 2, 'pull/3', 8100000002, 'mona', FALSE, 'src/sync.js', NULL, NULL, NULL, NULL, 0, NULL, 1760000000002000);
