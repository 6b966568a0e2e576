INSERT INTO intent_cards (item_id, extractor, model, schema_version, prompt_version, render_version, source_hash, source_version, status, card, failure, created_at)
VALUES (1, 'local', 'rules', 1, 1, 1, '569363a54b503456ad0292a2db8e4466266a59b97b5077257bd58de6aa12b65e', 2, 'ready',
    '{"problem_statement":"Sync stops. It stops.","desired_outcome":"","important_signals":[],"scope_boundaries":[],"evidence_facts":[{"fact":"version 1.2.3","source":"title"}],"reported_claims":[],"inference":[],"unknowns":[],"missing_info":["the version"],"insufficient_context":false,"extraction_confidence":0.4}',
    NULL, 1760000000000000);
INSERT INTO intent_cards (item_id, extractor, model, schema_version, prompt_version, render_version, source_hash, source_version, status, card, failure, created_at)
VALUES (1, 'openai', 'some-model', 1, 1, 1, '569363a54b503456ad0292a2db8e4466266a59b97b5077257bd58de6aa12b65e', 2, 'failed', NULL, 'the answer is empty', 1760000000000001);
