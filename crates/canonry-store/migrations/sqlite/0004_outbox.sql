CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    number BIGINT NOT NULL CHECK (number >= 1),
    kind TEXT NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'sent', 'refused', 'failed')),
    -- How often something was sent for it.
    attempts BIGINT NOT NULL,
    -- Where a worker goes on; null before the first step.
    step TEXT,
    not_before BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT,
    answer TEXT,
    reason TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX outbox_pending ON outbox (repo_id, number, id) WHERE state = 'pending';

-- When something was sent that GitHub counts as content, whatever came of it; the last hour is kept.
CREATE TABLE content_writes (
    id INTEGER PRIMARY KEY,
    sent_at BIGINT NOT NULL
);

CREATE INDEX content_writes_by_time ON content_writes (sent_at);

CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL,
    created_at BIGINT NOT NULL
);
