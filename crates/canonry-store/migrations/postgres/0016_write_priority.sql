-- Reopenings, undos and corrections are sent before everything else, from a share of the pace that is kept for them.
ALTER TABLE outbox ADD COLUMN priority TEXT NOT NULL DEFAULT 'ordinary' CHECK (priority IN ('correction', 'ordinary'));

-- How much people asked for in a repository lately.
CREATE INDEX mentions_by_time ON mentions (repo_id, at);
