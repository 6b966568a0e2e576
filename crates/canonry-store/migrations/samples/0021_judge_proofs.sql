UPDATE judge_audit_runs SET prompt_version = 1, right_answers = 20, wrong_answers = 1;
