-- Where a write comes from and what it is about, which nobody has to read out of its key any more.
ALTER TABLE outbox ADD COLUMN origin TEXT NOT NULL DEFAULT 'other';
ALTER TABLE outbox ADD COLUMN item_type TEXT;
ALTER TABLE outbox ADD COLUMN origin_record BIGINT;
ALTER TABLE outbox ADD COLUMN origin_commit TEXT;

UPDATE outbox SET origin = CASE
    WHEN idempotency_key LIKE 'triage:%' THEN 'triage_comment'
    WHEN idempotency_key LIKE 'triage-label:%' THEN 'triage_label'
    WHEN idempotency_key LIKE 'triage-unlabel:%' THEN 'triage_unlabel'
    WHEN idempotency_key LIKE 'triage-grace:%' THEN 'grace_cancelled'
    WHEN idempotency_key LIKE 'triage-ruled:%' THEN 'ruling_edit'
    WHEN idempotency_key LIKE 'triage-ruled-label:%' THEN 'ruling_unlabel'
    WHEN idempotency_key LIKE 'triage%' THEN 'triage_edit'
    WHEN idempotency_key LIKE 'close:%' THEN 'close'
    WHEN idempotency_key LIKE 'label:%' THEN 'close_label'
    WHEN idempotency_key LIKE 'undo:%' THEN 'undo_comment'
    WHEN idempotency_key LIKE 'unlabel:%' THEN 'undo_unlabel'
    WHEN idempotency_key LIKE 'reopen:%' THEN 'reopen'
    WHEN idempotency_key LIKE 'backlink:%' THEN 'back_link'
    WHEN idempotency_key LIKE 'repoint:%' THEN 'repoint'
    WHEN idempotency_key LIKE 'review/%/post/%' THEN 'review_post'
    WHEN idempotency_key LIKE 'review/%/summary/%' THEN 'review_summary'
    WHEN idempotency_key LIKE 'review/%/summary-edit/%' THEN 'review_summary_edit'
    WHEN idempotency_key LIKE 'review/%/check/left-%' THEN 'review_check_left'
    WHEN idempotency_key LIKE 'review/%/check/%' THEN 'review_check'
    WHEN idempotency_key LIKE 'review/%/resolve/%' THEN 'review_resolve'
    WHEN idempotency_key LIKE 'review/%/settle/%' THEN 'review_settle'
    WHEN idempotency_key LIKE 'mention/%/dismissal/%' THEN 'dismissal_answer'
    WHEN idempotency_key LIKE 'mention/%/grace/%' THEN 'ruling_answer'
    WHEN idempotency_key LIKE 'mention/%' THEN 'mention_answer'
    WHEN idempotency_key LIKE 'brake/%' THEN 'breaker_notice'
    ELSE 'other'
END;

UPDATE outbox SET item_type = CASE
    WHEN idempotency_key LIKE '%:issue:%' THEN 'issue'
    WHEN idempotency_key LIKE '%:pr:%' THEN 'pr'
END
WHERE origin <> 'other' AND idempotency_key NOT LIKE '%/%';

-- The number at the end.
UPDATE outbox SET origin_record = substring(idempotency_key FROM '[0-9]{1,18}$')::BIGINT
WHERE origin IN ('triage_comment', 'triage_label', 'triage_unlabel', 'triage_edit', 'grace_cancelled', 'ruling_edit',
    'ruling_unlabel', 'mention_answer', 'dismissal_answer', 'ruling_answer', 'breaker_notice');

-- The number after the first colon.
UPDATE outbox SET origin_record = substring(idempotency_key FROM '^[a-z]+:([0-9]{1,18})')::BIGINT
WHERE origin IN ('close', 'close_label', 'undo_comment', 'undo_unlabel', 'reopen', 'repoint');

-- What follows the third slash: a review's number, or a word and a commit.
UPDATE outbox SET origin_record = substring(idempotency_key FROM '^review/[^/]*/[^/]*/([0-9]{1,18})-')::BIGINT,
    origin_commit = substring(idempotency_key FROM '^review/[^/]*/[^/]*/[a-z]+-([^-]+)-')
WHERE origin LIKE 'review%';
