-- The small vectors of a text's tokens. Not a column of embeddings: those are all read when an index is built, these for
-- the few items that are compared closely.
CREATE TABLE token_vectors (
    item_id BIGINT NOT NULL,
    representation TEXT NOT NULL,
    model TEXT NOT NULL,
    -- That of the vector beside which they were made.
    embedded_hash TEXT NOT NULL,
    -- The width in one byte, then signed bytes, vector after vector.
    vectors BYTEA NOT NULL,
    PRIMARY KEY (item_id, representation, model),
    FOREIGN KEY (item_id, representation, model) REFERENCES embeddings (item_id, representation, model) ON DELETE CASCADE
);

-- Nothing in them repeats: the server would only lose time with trying to compress them.
ALTER TABLE token_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;
