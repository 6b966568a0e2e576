-- Who is signed in to the console.
CREATE TABLE console_sessions (
    -- The SHA-256 of what the browser has, in hexadecimal digits: whoever reads this table cannot sign in with it.
    id TEXT PRIMARY KEY,
    -- Null for whoever signed in with the admin token.
    github_id BIGINT,
    login TEXT,
    operator BOOLEAN NOT NULL,
    -- Which admin token an operator showed: a hash of it and of what the browser has, so that nobody can guess the token here.
    seal TEXT,
    made_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    -- However often it is seen, it ends then.
    ends_at BIGINT NOT NULL,
    CHECK (operator = (seal IS NOT NULL))
);

CREATE INDEX console_sessions_by_end ON console_sessions (ends_at);

-- What people did in the console; rows are only ever added.
CREATE TABLE console_actions (
    id INTEGER PRIMARY KEY,
    at BIGINT NOT NULL,
    -- Null for whoever signed in with the admin token.
    by_login TEXT,
    operator BOOLEAN NOT NULL,
    -- Null for what is of no one repository.
    repo_id BIGINT REFERENCES repos (id) ON DELETE CASCADE,
    action TEXT NOT NULL,
    subject TEXT NOT NULL
);

CREATE INDEX console_actions_of_repo ON console_actions (repo_id, id);
CREATE INDEX console_actions_by_time ON console_actions (at);

-- Verdicts that were drawn for people to confirm or refute, each as it was when it was drawn.
CREATE TABLE adjudications (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    item_type TEXT NOT NULL CHECK (item_type IN ('issue', 'pr')),
    number BIGINT NOT NULL CHECK (number >= 1),
    -- The triage record or the judge's decision that it is about.
    triage_id BIGINT REFERENCES triage_records (id) ON DELETE CASCADE,
    decision_id BIGINT REFERENCES judge_decisions (id) ON DELETE CASCADE,
    -- The draw that it belongs to.
    seed BIGINT NOT NULL,
    drawn_at BIGINT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('duplicate', 'maybe_duplicate', 'not_duplicate')),
    score DOUBLE PRECISION CHECK (score BETWEEN 0 AND 1),
    target BIGINT CHECK (target >= 1),
    -- What a person said; null while nobody has.
    word TEXT CHECK (word IN ('same', 'different', 'unsure')),
    by_login TEXT,
    at BIGINT,
    CHECK ((triage_id IS NULL) <> (decision_id IS NULL)),
    CHECK ((word IS NULL) = (at IS NULL))
);

CREATE INDEX adjudications_of_repo ON adjudications (repo_id, id);
CREATE INDEX adjudications_waiting ON adjudications (repo_id, id) WHERE word IS NULL;
CREATE UNIQUE INDEX adjudications_of_triage ON adjudications (triage_id, seed) WHERE triage_id IS NOT NULL;
CREATE UNIQUE INDEX adjudications_of_decision ON adjudications (decision_id, seed) WHERE decision_id IS NOT NULL;

-- Whose word a row of a plan and a ruling are; null at the command line, and before anybody kept it.
ALTER TABLE close_run_items ADD COLUMN approved_by TEXT;
ALTER TABLE overrides ADD COLUMN created_by TEXT;

-- The newest of a repository are read without looking at its items.
ALTER TABLE triage_records ADD COLUMN repo_id BIGINT REFERENCES repos (id) ON DELETE CASCADE;
UPDATE triage_records SET repo_id = (SELECT repo_id FROM items WHERE items.id = triage_records.item_id);
CREATE INDEX triage_records_of_repo ON triage_records (repo_id, id);
CREATE INDEX triage_records_by_verdict ON triage_records (repo_id, verdict, id);

-- What the console's pages list and count. Where the filters of a list, or what is summed up, are columns of the index
-- itself, the rows with their texts are not read.
CREATE INDEX items_by_state ON items (repo_id, type, state, number) WHERE gone IS NULL;
CREATE INDEX canonicals_by_cluster ON canonicals (repo_id, type, representation, canonical_number, item_number, since);
CREATE INDEX close_run_items_in_order ON close_run_items (run_id, (COALESCE(target_item_id, 0)), item_id);
CREATE INDEX close_run_items_by_state ON close_run_items (run_id, action, skip_reason, approved, result, objected);
CREATE INDEX findings_of_repo ON findings (repo_id, id, severity, category, status, shown_as);
DROP INDEX findings_of_first_run;
CREATE INDEX findings_of_first_run ON findings (first_run, severity, first_shown, fixed, first_confidence);
CREATE INDEX graces_of_repo ON graces (repo_id, due_at) WHERE state = 'waiting';
CREATE INDEX graces_ever_of_item ON graces (item_id, id);
CREATE INDEX graces_of_close_run ON graces (close_run_id);
CREATE INDEX issue_outcomes_by_time ON issue_outcomes (repo_id, updated_at, lesson_kind, level, component) WHERE lesson_kind <> 'unknown';
CREATE INDEX outbox_of_item ON outbox (repo_id, number, id);
CREATE INDEX jobs_by_repo ON jobs (repo, id);
CREATE INDEX jobs_dead_by_repo ON jobs (repo) WHERE state = 'dead';
CREATE INDEX jobs_by_kind ON jobs (kind, id);
CREATE INDEX deliveries_by_repo ON deliveries (repo, received_at, id);
CREATE INDEX deliveries_by_event ON deliveries (event, received_at, id);
DROP INDEX deliveries_by_state;
CREATE INDEX deliveries_by_state ON deliveries (state, received_at, id);
