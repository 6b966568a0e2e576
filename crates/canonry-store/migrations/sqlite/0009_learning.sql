-- Who did it, as far as it counts: person, maintainer, bot, canonry, approved, unknown.
ALTER TABLE outcome_events ADD COLUMN by_whom TEXT NOT NULL DEFAULT 'unknown' CHECK (by_whom IN ('person', 'maintainer', 'bot', 'canonry', 'approved', 'unknown'));
-- What the issue's own text named when it was closed.
ALTER TABLE outcome_events ADD COLUMN in_body BIGINT;
ALTER TABLE outcome_events ADD COLUMN comment_id BIGINT;
-- The issue's labels then; null is not told.
ALTER TABLE outcome_events ADD COLUMN labels TEXT;
-- The numbers of the predicted target's cluster as it was then.
ALTER TABLE outcome_events ADD COLUMN cluster TEXT NOT NULL DEFAULT '[]';

-- Canonry's own closes and undos are events too; those of earlier versions are told here.
INSERT INTO outcome_events (item_id, delivery_id, kind, state_reason, duplicate_of, occurred_at, by_whom)
SELECT c.item_id, 'apply:' || c.run_id || '#' || i.number, 'closed', 'duplicate', t.number, c.result_at - CASE WHEN c.objected THEN 1 ELSE 0 END,
    CASE WHEN c.approved THEN 'approved' ELSE 'canonry' END
FROM close_run_items c JOIN close_runs r ON r.id = c.run_id JOIN items i ON i.id = c.item_id JOIN items t ON t.id = c.target_item_id
WHERE r.mode = 'apply' AND c.result = 'applied' AND i.type = 'issue';
INSERT INTO outcome_events (item_id, delivery_id, kind, occurred_at, by_whom)
SELECT c.item_id, 'objected:' || c.run_id || '#' || i.number, 'reopened', c.result_at, 'unknown'
FROM close_run_items c JOIN close_runs r ON r.id = c.run_id JOIN items i ON i.id = c.item_id
WHERE r.mode = 'apply' AND c.result = 'applied' AND c.objected AND i.type = 'issue';
INSERT INTO outcome_events (item_id, delivery_id, kind, occurred_at, by_whom)
SELECT c.item_id, 'undo:' || c.run_id || '#' || i.number, 'reopened', c.result_at, 'canonry'
FROM close_run_items c JOIN close_runs r ON r.id = c.run_id JOIN items i ON i.id = c.item_id
WHERE r.mode = 'undo' AND c.result = 'applied' AND i.type = 'issue';

-- What became of each issue and what that teaches, as derived from its events, records and reactions.
CREATE TABLE issue_outcomes (
    item_id BIGINT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- The record that counts.
    triage_id BIGINT REFERENCES triage_records (id) ON DELETE SET NULL,
    outcome TEXT NOT NULL,
    lesson TEXT NOT NULL,
    lesson_kind TEXT NOT NULL CHECK (lesson_kind IN ('confirmed', 'false_positive', 'missed', 'true_negative', 'unknown')),
    -- The whole points of the score of the prediction that it is about, if any.
    level BIGINT CHECK (level BETWEEN 0 AND 100),
    -- The bucket that the lesson counts in, beside the repository's.
    component TEXT,
    updated_at BIGINT NOT NULL
);

CREATE INDEX issue_outcomes_of_repo ON issue_outcomes (repo_id, component, lesson_kind, level) WHERE lesson_kind <> 'unknown';

-- What a repository asks of its thresholds, as last read from its configuration.
CREATE TABLE threshold_settings (
    repo_id BIGINT PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    rule TEXT NOT NULL CHECK (rule IN ('precision-target', 'beta-mean', 'beta-complement')),
    configured BIGINT NOT NULL CHECK (configured BETWEEN 50 AND 95),
    wanted DOUBLE PRECISION NOT NULL CHECK (wanted BETWEEN 0 AND 1),
    updated_at BIGINT NOT NULL
);

-- Always equal to a recomputation from the log.
CREATE TABLE threshold_state (
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- Empty for the repository itself.
    component TEXT NOT NULL,
    state TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, component)
);

CREATE TABLE threshold_adjustments (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    component TEXT,
    -- Null is silence.
    previous_threshold BIGINT,
    new_threshold BIGINT,
    alpha DOUBLE PRECISION NOT NULL,
    beta DOUBLE PRECISION NOT NULL,
    sample_count BIGINT NOT NULL,
    adjusted_at BIGINT NOT NULL
);

CREATE INDEX threshold_adjustments_of_repo ON threshold_adjustments (repo_id, id);

CREATE TABLE triage_comment_reactions (
    item_id BIGINT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    comment_id BIGINT NOT NULL,
    -- People who only agreed, only disagreed, or did both.
    up BIGINT NOT NULL CHECK (up >= 0),
    down BIGINT NOT NULL CHECK (down >= 0),
    mixed BIGINT NOT NULL CHECK (mixed >= 0),
    -- The item's component when reactions were first seen.
    component TEXT,
    synced_at BIGINT NOT NULL,
    PRIMARY KEY (item_id, comment_id)
);

-- What a record led to, and the threshold that decided it.
CREATE TABLE triage_actions (
    triage_id BIGINT PRIMARY KEY REFERENCES triage_records (id) ON DELETE CASCADE,
    mode TEXT NOT NULL CHECK (mode IN ('off', 'shadow', 'suggest', 'grace')),
    component TEXT,
    -- Null is silence.
    threshold BIGINT,
    source TEXT NOT NULL CHECK (source IN ('configured', 'learned')),
    action TEXT NOT NULL CHECK (action IN ('recorded', 'commented', 'edited', 'withdrawn')),
    reason TEXT NOT NULL,
    comment_key TEXT,
    created_at BIGINT NOT NULL
);

CREATE INDEX triage_records_of_run ON triage_records (run_id);

ALTER TABLE repos ADD COLUMN access TEXT NOT NULL DEFAULT 'active' CHECK (access IN ('active', 'removed', 'suspended', 'archived', 'deleted'));
ALTER TABLE repos ADD COLUMN access_since BIGINT;
ALTER TABLE repos ADD COLUMN installation_id BIGINT;
-- The rules by which the outcomes in this file were derived; older ones are derived anew when it is opened.
ALTER TABLE repos ADD COLUMN learned_by BIGINT NOT NULL DEFAULT 0;

CREATE INDEX repos_by_installation ON repos (installation_id);

-- The repository's own configuration as last fetched; null is that it has none.
CREATE TABLE repo_settings (
    repo_id BIGINT PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    text TEXT,
    fetched_at BIGINT NOT NULL
);

CREATE TABLE schedules (
    name TEXT PRIMARY KEY,
    last_fired_at BIGINT NOT NULL
);

-- The neighbours of an item among its duplicates.
CREATE INDEX items_by_duplicate_of ON items (repo_id, duplicate_of) WHERE duplicate_of IS NOT NULL;
CREATE INDEX canonicals_by_canonical ON canonicals (repo_id, type, canonical_number);
CREATE INDEX judge_decisions_in_force_by_target ON judge_decisions (target_item_id) WHERE status = 'accepted' AND superseded_at IS NULL;

-- When its last try began.
ALTER TABLE jobs ADD COLUMN begun_at BIGINT;
-- What a delivery caused runs before what schedules ask for.
DROP INDEX jobs_unfinished;
CREATE INDEX jobs_unfinished ON jobs ((delivery_id IS NULL), id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_dead ON jobs (id) WHERE state = 'dead';
CREATE INDEX jobs_by_key ON jobs (key, kind, id);
CREATE INDEX deliveries_by_state ON deliveries (state);
-- Whether the body was thrown away, long after it was of use; the id stays.
ALTER TABLE deliveries ADD COLUMN emptied BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX deliveries_to_empty ON deliveries (emptied, finished_at) WHERE state IN ('done', 'ignored');

-- Bodies are packed before they come here; those of before stay the texts they are.
ALTER TABLE deliveries RENAME COLUMN payload TO payload_text;
ALTER TABLE deliveries ADD COLUMN payload BLOB NOT NULL DEFAULT x'';
UPDATE deliveries SET payload = CAST(payload_text AS BLOB);
ALTER TABLE deliveries DROP COLUMN payload_text;
