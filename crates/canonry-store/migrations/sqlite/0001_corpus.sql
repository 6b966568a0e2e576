CREATE TABLE repos (
    id INTEGER PRIMARY KEY,
    github_id BIGINT UNIQUE,
    name TEXT NOT NULL,
    -- The name in lower case: GitHub ignores letter case.
    name_key TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    repo_id BIGINT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    type TEXT NOT NULL CHECK (type IN ('issue', 'pr')),
    number BIGINT NOT NULL CHECK (number >= 1),
    github_id BIGINT,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'closed')),
    state_reason TEXT,
    merged BOOLEAN NOT NULL,
    draft BOOLEAN NOT NULL,
    author TEXT,
    -- Null is unknown, an empty list is nobody.
    assignees TEXT,
    labels TEXT NOT NULL,
    comments BIGINT NOT NULL,
    review_comments BIGINT NOT NULL,
    created_at BIGINT,
    updated_at BIGINT,
    closed_at BIGINT,
    url TEXT,
    duplicate_of BIGINT,
    changes TEXT,
    content_hash TEXT NOT NULL,
    content_version BIGINT NOT NULL,
    last_synced_at BIGINT,
    gone TEXT,
    UNIQUE (repo_id, type, number)
);

CREATE TABLE maintainer_lists (
    repo_id BIGINT PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    source TEXT NOT NULL CHECK (source IN ('set', 'github')),
    logins TEXT NOT NULL,
    written_at BIGINT NOT NULL
);
