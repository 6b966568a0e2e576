-- Deleting a row looks for all that refers to it: without these it would walk through a whole table for each.
CREATE INDEX candidate_set_members_of_item ON candidate_set_members (item_id);
CREATE INDEX judge_decisions_of_set ON judge_decisions (candidate_set_id) WHERE candidate_set_id IS NOT NULL;
CREATE INDEX judge_decisions_of_target ON judge_decisions (target_item_id) WHERE target_item_id IS NOT NULL;
CREATE INDEX close_runs_of_plan ON close_runs (plan_id) WHERE plan_id IS NOT NULL;
CREATE INDEX triage_records_of_target ON triage_records (target_item_id) WHERE target_item_id IS NOT NULL;
CREATE INDEX triage_candidates_of_item ON triage_candidates (item_id);
CREATE INDEX judge_audit_run_items_of_item ON judge_audit_run_items (item_id);
CREATE INDEX judge_audit_run_items_of_set ON judge_audit_run_items (candidate_set_id) WHERE candidate_set_id IS NOT NULL;
CREATE INDEX issue_outcomes_of_triage ON issue_outcomes (triage_id) WHERE triage_id IS NOT NULL;
CREATE INDEX findings_of_last_run ON findings (last_run);
CREATE INDEX suppression_log_of_finding ON suppression_log (finding_id);
CREATE INDEX posted_findings_of_run ON posted_findings (run_id);
CREATE INDEX graces_of_triage ON graces (triage_id) WHERE triage_id IS NOT NULL;
CREATE INDEX graces_of_target ON graces (target_item_id);
CREATE INDEX objections_of_item ON objections (item_id);
