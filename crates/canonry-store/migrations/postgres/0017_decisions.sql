-- An exclusion is a ruling that lasts until somebody lifts it.
ALTER TABLE overrides DROP CONSTRAINT overrides_kind_check;
ALTER TABLE overrides ADD CONSTRAINT overrides_kind_check CHECK (kind IN ('duplicate', 'not_duplicate', 'canonical', 'excluded'));

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
