-- People also read what a backtest would have said. Such a case belongs to no triage record and to no decision.
ALTER TABLE adjudications DROP CONSTRAINT adjudications_check;
ALTER TABLE adjudications ADD CONSTRAINT adjudications_check CHECK (triage_id IS NULL OR decision_id IS NULL);

CREATE UNIQUE INDEX adjudications_of_backtest ON adjudications (repo_id, item_type, number, target)
    WHERE triage_id IS NULL AND decision_id IS NULL;
