-- People also read what a backtest would have said. Such a case belongs to no triage record and to no decision.
CREATE TABLE adjudications_rebuilt (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    item_type TEXT NOT NULL CHECK (item_type IN ('issue', 'pr')),
    number BIGINT NOT NULL CHECK (number >= 1),
    -- The triage record or the judge's decision that it is about; neither for a backtest's verdict.
    triage_id BIGINT REFERENCES triage_records (id) ON DELETE CASCADE,
    decision_id BIGINT REFERENCES judge_decisions (id) ON DELETE CASCADE,
    -- The draw that it belongs to.
    seed BIGINT NOT NULL,
    drawn_at BIGINT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('duplicate', 'maybe_duplicate', 'not_duplicate')),
    score DOUBLE PRECISION CHECK (score BETWEEN 0 AND 1),
    target BIGINT CHECK (target >= 1),
    -- What a person said; null while nobody has.
    word TEXT CHECK (word IN ('same', 'different', 'unsure')),
    by_login TEXT,
    at BIGINT,
    CHECK (triage_id IS NULL OR decision_id IS NULL),
    CHECK ((word IS NULL) = (at IS NULL))
);

INSERT INTO adjudications_rebuilt
    (id, repo_id, item_type, number, triage_id, decision_id, seed, drawn_at, verdict, score, target, word, by_login, at)
SELECT id, repo_id, item_type, number, triage_id, decision_id, seed, drawn_at, verdict, score, target, word, by_login, at
FROM adjudications;

DROP TABLE adjudications;
ALTER TABLE adjudications_rebuilt RENAME TO adjudications;

CREATE INDEX adjudications_of_repo ON adjudications (repo_id, id);
CREATE INDEX adjudications_waiting ON adjudications (repo_id, id) WHERE word IS NULL;
CREATE UNIQUE INDEX adjudications_of_triage ON adjudications (triage_id, seed) WHERE triage_id IS NOT NULL;
CREATE UNIQUE INDEX adjudications_of_decision ON adjudications (decision_id, seed) WHERE decision_id IS NOT NULL;
CREATE UNIQUE INDEX adjudications_of_backtest ON adjudications (repo_id, item_type, number, target)
    WHERE triage_id IS NULL AND decision_id IS NULL;
