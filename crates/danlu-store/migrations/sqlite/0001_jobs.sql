-- A job is one row. `spec` and `life` are JSON and say everything; the columns beside them are for filters and order.
-- Times are microseconds since 1970.
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY,
    name         TEXT    NOT NULL,
    workspace    TEXT    NOT NULL,
    owner        TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    outcome      TEXT,
    submitted_at INTEGER NOT NULL,
    ended_at     INTEGER,
    generation   INTEGER NOT NULL,
    spec         TEXT    NOT NULL,
    life         TEXT    NOT NULL
) STRICT;

CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_outcome ON jobs (outcome, id) WHERE outcome IS NOT NULL;
CREATE INDEX jobs_by_workspace ON jobs (workspace, id);
CREATE INDEX jobs_by_name ON jobs (name, id);
CREATE INDEX jobs_live ON jobs (id) WHERE ended_at IS NULL;
CREATE INDEX jobs_by_end ON jobs (ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE job_labels (
    job   INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    key   TEXT    NOT NULL,
    value TEXT    NOT NULL,
    PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_labels_by_value ON job_labels (key, value, job);

CREATE TABLE submissions (
    key TEXT    NOT NULL PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX submissions_by_job ON submissions (job);

-- History outlives the jobs it is about: no foreign key.
CREATE TABLE events (
    number  INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    job     INTEGER,
    attempt INTEGER,
    kind    TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    message TEXT    NOT NULL
) STRICT;

CREATE INDEX events_by_job ON events (job, number);

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

-- One row, written by every commit.
CREATE TABLE counters (
    only_row          INTEGER PRIMARY KEY CHECK (only_row = 1),
    job_last_id       INTEGER NOT NULL,
    event_last_number INTEGER NOT NULL
) STRICT;

INSERT INTO counters (only_row, job_last_id, event_last_number) VALUES (1, 0, 0);
