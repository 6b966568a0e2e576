CREATE TABLE embeddings (
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    representation TEXT NOT NULL CHECK (representation IN ('raw', 'intent')),
    model TEXT NOT NULL,
    dim BIGINT NOT NULL CHECK (dim >= 1),
    -- f32, little-endian.
    vector BLOB NOT NULL,
    -- The content hash of the item, or of its card's source, when it was embedded.
    embedded_hash TEXT NOT NULL,
    embedded_at BIGINT NOT NULL,
    PRIMARY KEY (item_id, representation, model)
);

CREATE TABLE calibrations (
    model TEXT PRIMARY KEY,
    calibration TEXT NOT NULL,
    fitted_at BIGINT NOT NULL
);
