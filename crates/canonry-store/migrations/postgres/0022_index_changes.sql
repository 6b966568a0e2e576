-- How often what is indexed of a repository's items has changed: whoever keeps an index in memory asks before each use.
-- Raised in the transaction that makes the change, so that a version that can be read has all of its changes.
CREATE TABLE index_versions (
    repo_id BIGINT PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    -- Drawn when the row is made: another repository may get the key of one that was purged.
    epoch BIGINT NOT NULL,
    version BIGINT NOT NULL,
    -- The last version at which more changed than item_changes names.
    relisted BIGINT NOT NULL,
    -- The last version at which shared text was learned.
    boilerplate BIGINT NOT NULL
);

-- The version at which an item changed last: its text, state or changes, one of its vectors, or what of it is its own.
CREATE TABLE item_changes (
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    type TEXT NOT NULL CHECK (type IN ('issue', 'pr')),
    number BIGINT NOT NULL CHECK (number >= 1),
    version BIGINT NOT NULL,
    PRIMARY KEY (repo_id, type, number)
);

CREATE INDEX item_changes_by_version ON item_changes (repo_id, type, version);

-- How many texts there are is asked for every new item, and must not read the texts.
CREATE INDEX items_texts ON items (repo_id, type, gone, content_version);
