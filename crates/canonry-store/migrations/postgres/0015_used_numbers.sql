-- The largest number that a row had which is deleted. Here a sequence remembers it, and nothing is written: the table is
-- SQLite's, where a number comes again.
CREATE TABLE used_numbers (
    name TEXT PRIMARY KEY,
    last BIGINT NOT NULL
);
