-- The largest number that a row had which is deleted. SQLite gives a number again when the row that had the largest one is
-- gone, and plans are named by theirs outside of the database: in comments on GitHub, in tabs and in commands.
CREATE TABLE used_numbers (
    name TEXT PRIMARY KEY,
    last BIGINT NOT NULL
);

-- However a run is deleted: by itself, with its plan or with its repository.
CREATE TRIGGER close_runs_used AFTER DELETE ON close_runs
BEGIN
    INSERT INTO used_numbers (name, last) VALUES ('close_runs', OLD.id)
        ON CONFLICT (name) DO UPDATE SET last = max(last, excluded.last);
END;
