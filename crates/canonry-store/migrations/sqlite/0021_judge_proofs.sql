-- How the cheap judge's accepted answers turned out, and to which version of the question; null before anybody kept it,
-- which proves nothing.
ALTER TABLE judge_audit_runs ADD COLUMN prompt_version BIGINT;
ALTER TABLE judge_audit_runs ADD COLUMN right_answers BIGINT CHECK (right_answers >= 0);
ALTER TABLE judge_audit_runs ADD COLUMN wrong_answers BIGINT CHECK (wrong_answers >= 0);
