-- The claims: of one subject at most one is unfinished.
CREATE TABLE review_runs (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- pull/NUMBER or branch/NAME.
    subject TEXT NOT NULL,
    base_sha TEXT NOT NULL,
    head_sha TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'completed', 'failed', 'superseded')),
    lease_owner TEXT,
    lease_until BIGINT,
    requested BOOLEAN NOT NULL,
    full_requested BOOLEAN NOT NULL,
    attempts BIGINT NOT NULL CHECK (attempts >= 1),
    error TEXT,
    -- When what it reviews came about, as far as anybody told: which of two heads is the newer.
    asked_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    finished_at BIGINT
);

CREATE INDEX review_runs_of_subject ON review_runs (repo_id, subject, id);
CREATE INDEX review_runs_completed ON review_runs (repo_id, subject, id) WHERE state = 'completed';
CREATE INDEX review_runs_of_repo ON review_runs (repo_id, id);
CREATE UNIQUE INDEX review_runs_unfinished ON review_runs (repo_id, subject) WHERE state IN ('pending', 'running');

-- One row per completed run, never changed.
CREATE TABLE reviews (
    run_id BIGINT PRIMARY KEY REFERENCES review_runs (id) ON DELETE CASCADE,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    mode TEXT NOT NULL CHECK (mode IN ('full', 'incremental')),
    reason TEXT NOT NULL,
    files_read BIGINT NOT NULL,
    lines_read BIGINT NOT NULL,
    shown BIGINT NOT NULL,
    suppressed BIGINT NOT NULL,
    fixed BIGINT NOT NULL,
    notes TEXT NOT NULL,
    reviewers TEXT NOT NULL,
    model TEXT,
    cost_usd DOUBLE PRECISION NOT NULL,
    completed_at BIGINT NOT NULL
);

CREATE INDEX reviews_of_repo ON reviews (repo_id, completed_at, run_id);

-- One row per finding of a subject, as it was last seen.
CREATE TABLE findings (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    path TEXT NOT NULL,
    line BIGINT,
    severity TEXT NOT NULL CHECK (severity IN ('minor', 'medium', 'major', 'critical')),
    category TEXT NOT NULL CHECK (category IN ('security', 'correctness', 'performance', 'style', 'documentation')),
    status TEXT NOT NULL CHECK (status IN ('new', 'same', 'moved', 'fixed', 'reopened', 'dismissed')),
    shown_as TEXT NOT NULL CHECK (shown_as IN ('inline', 'details', 'low_confidence', 'suppressed')),
    said_inline BOOLEAN NOT NULL,
    fixed BOOLEAN NOT NULL,
    -- Whether it ever was one that feedback must not hide.
    protected BOOLEAN NOT NULL,
    latest TEXT NOT NULL,
    first_run BIGINT NOT NULL REFERENCES review_runs (id) ON DELETE CASCADE,
    last_run BIGINT NOT NULL REFERENCES review_runs (id) ON DELETE CASCADE,
    -- How it was when it was first told of: what is counted for that day.
    first_shown BOOLEAN NOT NULL,
    first_confidence BIGINT NOT NULL CHECK (first_confidence BETWEEN 0 AND 100)
);

CREATE INDEX findings_of_subject ON findings (repo_id, subject, id);
-- Keys and paths can be longer than PostgreSQL puts into an index.
CREATE INDEX findings_of_pattern ON findings (repo_id, substr(key, 1, 200), id);
CREATE INDEX findings_protected ON findings (repo_id, substr(key, 1, 200)) WHERE protected;
CREATE INDEX findings_of_file ON findings (repo_id, substr(path, 1, 200), id);
CREATE INDEX findings_of_fingerprint ON findings (repo_id, fingerprint);
CREATE INDEX findings_of_first_run ON findings (first_run);

-- What each completed run said about each finding; only ever added to.
CREATE TABLE finding_sightings (
    finding_id BIGINT NOT NULL REFERENCES findings (id) ON DELETE CASCADE,
    run_id BIGINT NOT NULL REFERENCES review_runs (id) ON DELETE CASCADE,
    -- From 0, in the run's order.
    place BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('new', 'same', 'moved', 'fixed', 'reopened', 'dismissed')),
    shown_as TEXT NOT NULL CHECK (shown_as IN ('inline', 'details', 'low_confidence', 'suppressed')),
    hidden_by TEXT,
    confidence BIGINT NOT NULL CHECK (confidence BETWEEN 0 AND 100),
    grounded BOOLEAN NOT NULL,
    said_inline BOOLEAN NOT NULL,
    reported BOOLEAN NOT NULL,
    code_unchanged BOOLEAN NOT NULL,
    finding TEXT NOT NULL,
    PRIMARY KEY (finding_id, run_id)
);

CREATE UNIQUE INDEX finding_sightings_of_run ON finding_sightings (run_id, place);

CREATE TABLE suppression_log (
    run_id BIGINT NOT NULL REFERENCES review_runs (id) ON DELETE CASCADE,
    finding_id BIGINT NOT NULL REFERENCES findings (id) ON DELETE CASCADE,
    fingerprint TEXT NOT NULL,
    title TEXT NOT NULL,
    hidden_by TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (run_id, finding_id)
);

CREATE TABLE dismissals (
    id INTEGER PRIMARY KEY,
    finding_id BIGINT NOT NULL REFERENCES findings (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('wont_fix', 'resolved', 'not_useful')),
    dismisser TEXT NOT NULL CHECK (dismisser IN ('author', 'maintainer')),
    by_login TEXT NOT NULL,
    -- The flagged code of what was answered; null for a remark on a file as a whole.
    code TEXT,
    -- How grave it was then: a no to something mild does not silence something grave.
    severity TEXT NOT NULL CHECK (severity IN ('minor', 'medium', 'major', 'critical')),
    category TEXT NOT NULL CHECK (category IN ('security', 'correctness', 'performance', 'style', 'documentation')),
    at BIGINT NOT NULL,
    withdrawn_at BIGINT
);

CREATE INDEX dismissals_of_finding ON dismissals (finding_id, id);

CREATE TABLE feedback_reactions (
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- GitHub's id of the reaction.
    reaction_id BIGINT NOT NULL,
    subject TEXT NOT NULL,
    finding_id BIGINT NOT NULL REFERENCES findings (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    by_login TEXT NOT NULL,
    up BOOLEAN NOT NULL,
    at BIGINT NOT NULL,
    -- Whether it says something about the pattern.
    teaches BOOLEAN NOT NULL,
    removed_at BIGINT,
    PRIMARY KEY (repo_id, reaction_id)
);

CREATE INDEX feedback_reactions_of_finding ON feedback_reactions (finding_id);
CREATE INDEX feedback_reactions_that_count ON feedback_reactions (repo_id) WHERE teaches AND removed_at IS NULL;

CREATE TABLE feedback_clears (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- Null is every pattern.
    key TEXT,
    by_login TEXT NOT NULL,
    at BIGINT NOT NULL
);

CREATE INDEX feedback_clears_of_repo ON feedback_clears (repo_id);

-- What became of a finding is not stored with its memory: it is read from what people did.
CREATE TABLE finding_memories (
    finding_id BIGINT PRIMARY KEY REFERENCES findings (id) ON DELETE CASCADE,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    title TEXT NOT NULL,
    message TEXT NOT NULL,
    path TEXT NOT NULL,
    severity TEXT NOT NULL CHECK (severity IN ('minor', 'medium', 'major', 'critical')),
    category TEXT NOT NULL CHECK (category IN ('security', 'correctness', 'performance', 'style', 'documentation')),
    model TEXT NOT NULL,
    -- 32-bit floats, the lowest byte first.
    vector BLOB NOT NULL,
    at BIGINT NOT NULL
);

CREATE INDEX finding_memories_of_repo ON finding_memories (repo_id, model, finding_id);

-- Whether the repository's counts may join the global ones.
ALTER TABLE repos ADD COLUMN shares_patterns BOOLEAN NOT NULL DEFAULT FALSE;
-- Whether the owner's other repositories may use what was learned in it.
ALTER TABLE repos ADD COLUMN shares_memories BOOLEAN NOT NULL DEFAULT FALSE;

-- Counts only: neither a repository nor any text.
CREATE TABLE global_patterns (
    fingerprint TEXT NOT NULL,
    severity TEXT NOT NULL CHECK (severity IN ('minor', 'medium', 'major', 'critical')),
    category TEXT NOT NULL CHECK (category IN ('security', 'correctness', 'performance', 'style', 'documentation')),
    shown BIGINT NOT NULL,
    fixed BIGINT NOT NULL,
    dismissed BIGINT NOT NULL,
    thumbs_up BIGINT NOT NULL,
    thumbs_down BIGINT NOT NULL,
    PRIMARY KEY (fingerprint, severity, category)
);
