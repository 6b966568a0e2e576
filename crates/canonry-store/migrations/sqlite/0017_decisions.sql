-- An exclusion is a ruling that lasts until somebody lifts it. SQLite cannot change a CHECK, so the table is made anew.
CREATE TABLE overrides_with_exclusions (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    type TEXT NOT NULL CHECK (type IN ('issue', 'pr')),
    kind TEXT NOT NULL CHECK (kind IN ('duplicate', 'not_duplicate', 'canonical', 'excluded')),
    item_number BIGINT NOT NULL CHECK (item_number >= 1),
    other_number BIGINT CHECK (other_number >= 1),
    note TEXT,
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    created_by TEXT,
    CHECK ((kind = 'canonical' AND other_number IS NULL) OR (kind <> 'canonical' AND other_number IS NOT NULL AND other_number <> item_number))
);

INSERT INTO overrides_with_exclusions (id, repo_id, type, kind, item_number, other_number, note, created_at, removed_at, created_by)
SELECT id, repo_id, type, kind, item_number, other_number, note, created_at, removed_at, created_by FROM overrides;
DROP TABLE overrides;
ALTER TABLE overrides_with_exclusions RENAME TO overrides;
CREATE INDEX overrides_of_repo ON overrides (repo_id, type, id);

-- What people excluded before, as the newest plan that has the item says.
INSERT INTO overrides (repo_id, type, kind, item_number, other_number, created_at, created_by)
SELECT i.repo_id, i.type, 'excluded', i.number, t.number, COALESCE(c.approved_at, p.created_at), c.approved_by
FROM close_run_items c JOIN close_runs p ON p.id = c.run_id AND p.mode = 'plan'
JOIN items i ON i.id = c.item_id JOIN items t ON t.id = c.target_item_id
WHERE c.action = 'close' AND c.approved IS FALSE
AND p.id = (SELECT max(q.id) FROM close_run_items d JOIN close_runs q ON q.id = d.run_id WHERE q.mode = 'plan' AND d.item_id = c.item_id);

-- Who last asked that an apply of the plan stops, and when. It counts for what was begun before.
ALTER TABLE close_runs ADD COLUMN stop_asked_at BIGINT;
ALTER TABLE close_runs ADD COLUMN stop_asked_by TEXT;

-- A clear can be undone; the row stays.
ALTER TABLE feedback_clears ADD COLUMN undone_at BIGINT;
ALTER TABLE feedback_clears ADD COLUMN undone_by TEXT;
