CREATE TABLE sync_progress (
    repo_id BIGINT PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    -- Everything that changed up to here has been taken in.
    watermark BIGINT,
    finished_at BIGINT,
    swept_at BIGINT
);

CREATE TABLE etags (
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    etag TEXT NOT NULL,
    written_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, url)
);

CREATE TABLE outcome_events (
    id INTEGER PRIMARY KEY,
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    delivery_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    state_reason TEXT,
    actor TEXT,
    duplicate_of BIGINT,
    occurred_at BIGINT NOT NULL
);

CREATE INDEX outcome_events_of_item ON outcome_events (item_id);
