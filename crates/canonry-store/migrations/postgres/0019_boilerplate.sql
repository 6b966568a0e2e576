-- Text that many items of a repository share, by type: hashes of lines and titles.
CREATE TABLE boilerplate (
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    type TEXT NOT NULL CHECK (type IN ('issue', 'pr')),
    learned JSONB NOT NULL,
    -- How many texts and changes of texts it was learned from.
    texts BIGINT NOT NULL,
    learned_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, type)
);

-- A vector whose item has the same text, of which less is its own by now. It counts until it is made again.
ALTER TABLE embeddings ADD COLUMN outdated BOOLEAN NOT NULL DEFAULT FALSE;
