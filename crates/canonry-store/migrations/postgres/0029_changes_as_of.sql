-- The last activity of a pull request that its stored changes include. Null is unknown: changes from a file, or from
-- before this column existed.
ALTER TABLE items ADD COLUMN changes_as_of BIGINT;

-- Earlier versions stored the counts of all repositories that share theirs. They are counted when they are read.
DROP TABLE global_patterns;
