-- Findings that stand as comments at their lines.
CREATE TABLE posted_findings (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- The pull request's number.
    number BIGINT NOT NULL,
    run_id BIGINT NOT NULL REFERENCES review_runs (id) ON DELETE CASCADE,
    finding_id BIGINT NOT NULL REFERENCES findings (id) ON DELETE CASCADE,
    -- GitHub's id of the review comment.
    comment_id BIGINT NOT NULL,
    posted_at BIGINT NOT NULL,
    -- What became of its thread once the finding was fixed or said anew: resolved, edited, or left to people.
    settled TEXT CHECK (settled IN ('resolved', 'edited', 'left')),
    settled_at BIGINT,
    -- When the reactions to it were last read.
    heard_at BIGINT,
    UNIQUE (repo_id, comment_id)
);

CREATE INDEX posted_findings_of_finding ON posted_findings (finding_id);
CREATE INDEX posted_findings_by_time ON posted_findings (posted_at);

-- The branch that a reviewed change was to be merged into then; null where nobody knows. Against another branch the same
-- commit is another change.
ALTER TABLE review_runs ADD COLUMN base_branch TEXT;

-- What holds Canonry back in a repository: a person's pause, or too many objections. Rows are never changed but for
-- the end of what they say.
CREATE TABLE brakes (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('pause', 'breaker')),
    -- Who pulled it; null when Canonry did so by itself.
    set_by TEXT,
    why TEXT NOT NULL,
    set_at BIGINT NOT NULL,
    lifted_by TEXT,
    lifted_at BIGINT
);

CREATE UNIQUE INDEX brakes_in_force ON brakes (repo_id, kind) WHERE lifted_at IS NULL;

-- Items that are closed at some moment unless somebody objects.
CREATE TABLE graces (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    target_item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    -- Null when a maintainer's ruling began it.
    triage_id BIGINT REFERENCES triage_records (id) ON DELETE CASCADE,
    -- The outbox key of the comment that announced it.
    comment_key TEXT,
    -- The maintainer whose ruling it is.
    approved_by TEXT,
    -- The version of the item's text that it is about.
    content_version BIGINT NOT NULL,
    began_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'cancelled', 'closed', 'refused')),
    -- Why it was cancelled or refused.
    reason TEXT,
    -- The plan that closed it, or tried to.
    close_run_id BIGINT REFERENCES close_runs (id) ON DELETE SET NULL,
    ended_at BIGINT
);

CREATE UNIQUE INDEX graces_of_item ON graces (item_id) WHERE state = 'waiting';
CREATE INDEX graces_that_wait ON graces (due_at) WHERE state = 'waiting';

-- What people said against closes of Canonry's: one for each close.
CREATE TABLE objections (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    -- The outbox key of the close.
    close_key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('reopened', 'undone', 'not_a_duplicate', 'reaction')),
    by_login TEXT,
    at BIGINT NOT NULL
);

CREATE INDEX objections_of_repo ON objections (repo_id, at);

-- What people asked Canonry for in comments, and what came of it.
CREATE TABLE mentions (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- Comments of a conversation and of a review have ids of their own.
    place TEXT NOT NULL CHECK (place IN ('issue', 'review')),
    comment_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    by_login TEXT NOT NULL,
    -- Null when nobody knows what was asked for.
    command TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN ('done', 'refused', 'not_understood', 'failed')),
    at BIGINT NOT NULL,
    UNIQUE (repo_id, place, comment_id)
);

CREATE INDEX mentions_of_person ON mentions (repo_id, number, by_login, at);

-- Reviews ask models too. A check can only be changed by making the table anew.
CREATE TABLE llm_calls_anew (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT REFERENCES repos (id) ON DELETE CASCADE,
    run_id TEXT NOT NULL,
    purpose TEXT NOT NULL CHECK (purpose IN ('judge', 'audit', 'intent', 'detect', 'review')),
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT CHECK (input_tokens >= 0),
    output_tokens BIGINT CHECK (output_tokens >= 0),
    -- US dollars; null where the price is not known.
    cost_usd DOUBLE PRECISION CHECK (cost_usd >= 0),
    latency_ms BIGINT NOT NULL CHECK (latency_ms >= 0),
    outcome TEXT NOT NULL CHECK (outcome IN ('answered', 'failed')),
    error TEXT,
    created_at BIGINT NOT NULL,
    CHECK ((outcome = 'failed') = (error IS NOT NULL))
);
INSERT INTO llm_calls_anew SELECT id, repo_id, run_id, purpose, provider, model, input_tokens, output_tokens, cost_usd, latency_ms, outcome, error, created_at FROM llm_calls;
DROP TABLE llm_calls;
ALTER TABLE llm_calls_anew RENAME TO llm_calls;
CREATE INDEX llm_calls_by_time ON llm_calls (repo_id, created_at);
CREATE INDEX llm_calls_of_run ON llm_calls (run_id);
