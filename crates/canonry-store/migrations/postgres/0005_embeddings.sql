CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE embeddings (
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    representation TEXT NOT NULL CHECK (representation IN ('raw', 'intent')),
    model TEXT NOT NULL,
    dim BIGINT NOT NULL CHECK (dim >= 1),
    -- Of any dimension; an index for each model is made when its first vectors arrive.
    vector vector NOT NULL,
    -- The content hash of the item, or of its card's source, when it was embedded.
    embedded_hash TEXT NOT NULL,
    embedded_at BIGINT NOT NULL,
    PRIMARY KEY (item_id, representation, model)
);

CREATE TABLE calibrations (
    model TEXT PRIMARY KEY,
    calibration JSONB NOT NULL,
    fitted_at BIGINT NOT NULL
);
