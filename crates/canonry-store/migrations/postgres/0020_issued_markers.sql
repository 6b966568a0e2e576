-- SHA-256 of the markers that were signed with a secret which is not in this database: by them a later run, which has
-- another secret, knows what the earlier ones wrote.
CREATE TABLE issued_markers (
    digest BYTEA PRIMARY KEY,
    issued_at BIGINT NOT NULL
);
