-- Comments of other reviewers on a change: who named a problem, where and when, and what people made of it.
CREATE TABLE remarks (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    -- GitHub's id of the review comment.
    comment_id BIGINT NOT NULL,
    author TEXT NOT NULL,
    is_bot BOOLEAN NOT NULL,
    path TEXT NOT NULL,
    -- The line at the head; null once its code changed.
    line BIGINT,
    link TEXT,
    said_at BIGINT,
    -- Canonry's own finding of the same problem.
    finding_id BIGINT REFERENCES findings (id) ON DELETE SET NULL,
    -- How many others name the same problem.
    agreeing BIGINT NOT NULL,
    outcome TEXT CHECK (outcome IN ('right', 'wrong')),
    seen_at BIGINT NOT NULL,
    UNIQUE (repo_id, comment_id)
);

CREATE INDEX remarks_of_finding ON remarks (finding_id);
