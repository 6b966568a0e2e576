-- Webhooks as they came, by GitHub's own id: a delivery that comes again is the same row.
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    event TEXT NOT NULL,
    action TEXT,
    -- The repository's name in lower case; it may be one that is not stored.
    repo TEXT,
    number BIGINT,
    -- The raw body. No JSONB: that cannot keep an escaped U+0000, and no delivery may be lost over it.
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'done', 'dead', 'ignored')),
    reason TEXT,
    received_at BIGINT NOT NULL,
    finished_at BIGINT
);

CREATE INDEX deliveries_by_time ON deliveries (received_at, id);

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    delivery_id TEXT REFERENCES deliveries (id) ON DELETE CASCADE,
    -- What it is about, such as owner/name#7: jobs of one key run one at a time, in the order of their ids.
    key TEXT NOT NULL,
    repo TEXT,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'dead')),
    -- How often it was leased since it was last queued by somebody.
    attempts BIGINT NOT NULL,
    run_after BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT,
    error TEXT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT
);

CREATE INDEX jobs_unfinished ON jobs (id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_unfinished_by_key ON jobs (key, id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_running_by_repo ON jobs (repo) WHERE state = 'running';
CREATE INDEX jobs_by_delivery ON jobs (delivery_id);
