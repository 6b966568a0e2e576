-- What Canonry did lately, whatever the repository.
CREATE INDEX triage_actions_commented ON triage_actions (created_at) WHERE action = 'commented';
CREATE INDEX close_run_items_applied ON close_run_items (result_at) WHERE result = 'applied';
