INSERT INTO used_numbers (name, last) VALUES ('close_runs', 7);
