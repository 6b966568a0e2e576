CREATE TABLE candidate_sets (
    id INTEGER PRIMARY KEY,
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    representation TEXT NOT NULL CHECK (representation IN ('raw', 'intent')),
    status TEXT NOT NULL CHECK (status IN ('fresh', 'stale')),
    content_version BIGINT NOT NULL,
    model TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- At most one fresh set of an item and representation; the older ones stay as history.
CREATE UNIQUE INDEX candidate_sets_one_fresh ON candidate_sets (item_id, representation) WHERE status = 'fresh';

CREATE TABLE candidate_set_members (
    set_id BIGINT NOT NULL REFERENCES candidate_sets (id) ON DELETE CASCADE,
    rank BIGINT NOT NULL CHECK (rank >= 1),
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    score DOUBLE PRECISION NOT NULL,
    parts TEXT NOT NULL,
    PRIMARY KEY (set_id, rank)
);

CREATE INDEX candidate_sets_of_item ON candidate_sets (item_id);
