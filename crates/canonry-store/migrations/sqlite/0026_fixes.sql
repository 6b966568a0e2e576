-- What a merged pull request fixes for everybody: the branch that it changes, and the repository's default branch. Null is
-- unknown.
ALTER TABLE items ADD COLUMN base_branch TEXT;
ALTER TABLE repos ADD COLUMN default_branch TEXT;

-- The closed report with the same problem as a triaged issue, and the merged pull request that fixed it. No duplicate.
CREATE TABLE fix_matches (
    triage_id BIGINT PRIMARY KEY REFERENCES triage_records (id) ON DELETE CASCADE,
    report_item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('fixed', 'possible_regression')),
    score DOUBLE PRECISION NOT NULL CHECK (score BETWEEN 0 AND 1),
    confidence DOUBLE PRECISION CHECK (confidence BETWEEN 0 AND 1),
    -- The pull request's number.
    fix BIGINT NOT NULL CHECK (fix >= 1),
    merged_at BIGINT NOT NULL,
    -- The first release that contains the fix, if known.
    release TEXT
);

CREATE INDEX fix_matches_of_report ON fix_matches (report_item_id);
