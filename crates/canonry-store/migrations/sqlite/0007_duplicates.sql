-- How alike the members are to each other: [[number, number, score], …].
ALTER TABLE candidate_sets ADD COLUMN pairs TEXT NOT NULL DEFAULT '[]';

-- The newest set of an item and representation.
CREATE INDEX candidate_sets_by_age ON candidate_sets (item_id, representation, id);
-- Pages of items, of both types or one, by number.
CREATE INDEX items_by_number ON items (repo_id, number, type);

CREATE TABLE judge_decisions (
    id INTEGER PRIMARY KEY,
    -- The source's, again: without it PostgreSQL took 24 s for 10,000 edges of tables that it had not analysed yet.
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    target_item_id BIGINT REFERENCES items (id) ON DELETE CASCADE,
    representation TEXT NOT NULL CHECK (representation IN ('raw', 'intent')),
    candidate_set_id BIGINT REFERENCES candidate_sets (id) ON DELETE SET NULL,
    origin TEXT NOT NULL CHECK (origin IN ('batch', 'online', 'override')),
    status TEXT NOT NULL CHECK (status IN ('accepted', 'rejected', 'skipped')),
    -- When a later decision, or the end of the override behind it, took its place.
    superseded_at BIGINT,
    -- What the model said; the status is what the gates made of it.
    model_is_duplicate BOOLEAN,
    confidence DOUBLE PRECISION CHECK (confidence BETWEEN 0 AND 1),
    reasoning TEXT,
    structure TEXT,
    reason TEXT,
    answer TEXT,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_version BIGINT NOT NULL,
    config_hash TEXT NOT NULL,
    -- Of everything that the judge saw; the same again need not be asked again.
    input_hash TEXT NOT NULL,
    source_version BIGINT NOT NULL,
    target_version BIGINT,
    candidates TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    CHECK (status <> 'accepted' OR (target_item_id IS NOT NULL AND target_version IS NOT NULL AND confidence IS NOT NULL AND target_item_id <> item_id))
);

-- At most one accepted edge of an item and representation; the earlier ones stay as history.
CREATE UNIQUE INDEX judge_decisions_one_accepted ON judge_decisions (item_id, representation) WHERE status = 'accepted' AND superseded_at IS NULL;
CREATE INDEX judge_decisions_in_force ON judge_decisions (repo_id, representation) WHERE status = 'accepted' AND superseded_at IS NULL;
CREATE INDEX judge_decisions_by_age ON judge_decisions (item_id, representation, id);

CREATE TABLE overrides (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    type TEXT NOT NULL CHECK (type IN ('issue', 'pr')),
    kind TEXT NOT NULL CHECK (kind IN ('duplicate', 'not_duplicate', 'canonical')),
    item_number BIGINT NOT NULL CHECK (item_number >= 1),
    other_number BIGINT CHECK (other_number >= 1),
    note TEXT,
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    CHECK ((kind = 'canonical' AND other_number IS NULL) OR (kind <> 'canonical' AND other_number IS NOT NULL AND other_number <> item_number))
);

CREATE INDEX overrides_of_repo ON overrides (repo_id, type, id);

-- Which item stands for the cluster of each member, itself included.
CREATE TABLE canonicals (
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    type TEXT NOT NULL CHECK (type IN ('issue', 'pr')),
    representation TEXT NOT NULL CHECK (representation IN ('raw', 'intent')),
    item_number BIGINT NOT NULL CHECK (item_number >= 1),
    canonical_number BIGINT NOT NULL CHECK (canonical_number >= 1),
    since BIGINT NOT NULL,
    PRIMARY KEY (repo_id, type, representation, item_number)
);

CREATE TABLE close_runs (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    mode TEXT NOT NULL CHECK (mode IN ('plan', 'apply', 'undo')),
    -- The plan that is applied or undone.
    plan_id BIGINT REFERENCES close_runs (id) ON DELETE CASCADE,
    representation TEXT NOT NULL CHECK (representation IN ('raw', 'intent')),
    target_policy TEXT NOT NULL CHECK (target_policy IN ('canonical-only', 'direct-fallback')),
    min_close DOUBLE PRECISION NOT NULL CHECK (min_close BETWEEN 0 AND 1),
    config_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    run_id TEXT NOT NULL,
    CHECK ((mode = 'plan') = (plan_id IS NULL))
);

-- A plan is applied once, however often it is asked for, and undone by one run at a time.
CREATE UNIQUE INDEX close_runs_one_apply ON close_runs (plan_id) WHERE mode = 'apply';
CREATE UNIQUE INDEX close_runs_one_undo_at_a_time ON close_runs (plan_id) WHERE mode = 'undo' AND finished_at IS NULL;
CREATE INDEX close_runs_of_repo ON close_runs (repo_id, mode);

CREATE TABLE close_run_items (
    run_id BIGINT NOT NULL REFERENCES close_runs (id) ON DELETE CASCADE,
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    target_item_id BIGINT REFERENCES items (id) ON DELETE CASCADE,
    action TEXT NOT NULL CHECK (action IN ('close', 'skip')),
    skip_reason TEXT,
    confidence DOUBLE PRECISION CHECK (confidence BETWEEN 0 AND 1),
    -- A person's word: null is none, false leaves the row out.
    approved BOOLEAN,
    approved_at BIGINT,
    evidence TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    result TEXT CHECK (result IN ('applied', 'skipped', 'failed')),
    -- People had opened it again by the time the close was seen to have worked.
    objected BOOLEAN NOT NULL DEFAULT FALSE,
    result_reason TEXT,
    result_at BIGINT,
    outbox_key TEXT,
    PRIMARY KEY (run_id, item_id),
    CHECK ((action = 'close' AND target_item_id IS NOT NULL AND target_item_id <> item_id AND skip_reason IS NULL) OR (action = 'skip' AND skip_reason IS NOT NULL AND result IS NULL)),
    CHECK ((result IS NULL) = (result_at IS NULL))
);

CREATE INDEX close_run_items_of_item ON close_run_items (item_id);
CREATE INDEX close_run_items_of_target ON close_run_items (target_item_id);

-- Whoever closes or reopens in a repository holds this; one at a time.
CREATE TABLE close_leases (
    repo_id BIGINT PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    until BIGINT NOT NULL
);

CREATE TABLE triage_records (
    id INTEGER PRIMARY KEY,
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    verdict TEXT NOT NULL CHECK (verdict IN ('duplicate', 'maybe_duplicate', 'not_duplicate')),
    target_item_id BIGINT REFERENCES items (id) ON DELETE CASCADE,
    target_score DOUBLE PRECISION CHECK (target_score BETWEEN 0 AND 1),
    is_duplicate BOOLEAN NOT NULL,
    confidence DOUBLE PRECISION CHECK (confidence BETWEEN 0 AND 1),
    reason TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    effective_source TEXT NOT NULL CHECK (effective_source IN ('raw', 'intent')),
    source_fallback_reason TEXT,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_version BIGINT NOT NULL,
    config_hash TEXT NOT NULL,
    content_version BIGINT NOT NULL,
    embed_model TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    run_id TEXT NOT NULL
);

CREATE INDEX triage_records_of_item ON triage_records (item_id);

CREATE TABLE triage_candidates (
    triage_id BIGINT NOT NULL REFERENCES triage_records (id) ON DELETE CASCADE,
    rank BIGINT NOT NULL CHECK (rank >= 1),
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    score DOUBLE PRECISION NOT NULL CHECK (score BETWEEN 0 AND 1),
    parts TEXT NOT NULL,
    -- As it was then.
    state TEXT NOT NULL CHECK (state IN ('open', 'closed')),
    judged BOOLEAN NOT NULL,
    PRIMARY KEY (triage_id, rank)
);

CREATE TABLE judge_audit_runs (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    representation TEXT NOT NULL CHECK (representation IN ('raw', 'intent')),
    seed BIGINT NOT NULL,
    sample_size BIGINT NOT NULL CHECK (sample_size >= 0),
    cheap_provider TEXT NOT NULL,
    cheap_model TEXT NOT NULL,
    strong_provider TEXT NOT NULL,
    strong_model TEXT NOT NULL,
    min_edge DOUBLE PRECISION NOT NULL CHECK (min_edge BETWEEN 0 AND 1),
    created_at BIGINT NOT NULL,
    run_id TEXT NOT NULL
);

CREATE INDEX judge_audit_runs_of_repo ON judge_audit_runs (repo_id, id);

CREATE TABLE judge_audit_run_items (
    run_id BIGINT NOT NULL REFERENCES judge_audit_runs (id) ON DELETE CASCADE,
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    candidate_set_id BIGINT REFERENCES candidate_sets (id) ON DELETE SET NULL,
    candidates TEXT NOT NULL,
    cheap_status TEXT NOT NULL CHECK (cheap_status IN ('accepted', 'rejected', 'skipped', 'failed')),
    cheap_target BIGINT CHECK (cheap_target >= 1),
    cheap_confidence DOUBLE PRECISION CHECK (cheap_confidence BETWEEN 0 AND 1),
    cheap_reason TEXT,
    strong_status TEXT NOT NULL CHECK (strong_status IN ('accepted', 'rejected', 'skipped', 'failed')),
    strong_target BIGINT CHECK (strong_target >= 1),
    strong_confidence DOUBLE PRECISION CHECK (strong_confidence BETWEEN 0 AND 1),
    strong_reason TEXT,
    class TEXT NOT NULL CHECK (class IN ('tp', 'fp', 'fn', 'tn', 'conflict', 'incomplete')),
    PRIMARY KEY (run_id, item_id)
);

CREATE TABLE llm_calls (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT REFERENCES repos (id) ON DELETE CASCADE,
    run_id TEXT NOT NULL,
    purpose TEXT NOT NULL CHECK (purpose IN ('judge', 'audit', 'intent', 'detect')),
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

CREATE INDEX llm_calls_by_time ON llm_calls (repo_id, created_at);
CREATE INDEX llm_calls_of_run ON llm_calls (run_id);
