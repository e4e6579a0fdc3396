-- A job is one row. `spec` and `life` are JSON and say everything; the columns beside them are for filters and order.
-- TEXT rather than JSONB: nothing here looks inside, and what is read must be what was written, byte for byte.
-- Times are microseconds since 1970.
CREATE TABLE jobs (
    id           BIGINT PRIMARY KEY,
    name         TEXT   NOT NULL,
    workspace    TEXT   NOT NULL,
    owner        TEXT   NOT NULL,
    priority     BIGINT NOT NULL,
    state        TEXT   NOT NULL,
    outcome      TEXT,
    submitted_at BIGINT NOT NULL,
    ended_at     BIGINT,
    generation   BIGINT NOT NULL,
    spec         TEXT   NOT NULL,
    life         TEXT   NOT NULL
);

CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_outcome ON jobs (outcome, id) WHERE outcome IS NOT NULL;
CREATE INDEX jobs_by_workspace ON jobs (workspace, id);
CREATE INDEX jobs_by_name ON jobs (name, id);
CREATE INDEX jobs_live ON jobs (id) WHERE ended_at IS NULL;
CREATE INDEX jobs_by_end ON jobs (ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE job_labels (
    job   BIGINT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    key   TEXT   NOT NULL,
    value TEXT   NOT NULL,
    PRIMARY KEY (job, key)
);

CREATE INDEX job_labels_by_value ON job_labels (key, value, job);

CREATE TABLE submissions (
    key TEXT   NOT NULL PRIMARY KEY,
    job BIGINT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE
);

CREATE INDEX submissions_by_job ON submissions (job);

-- History outlives the jobs it is about: no foreign key.
CREATE TABLE events (
    number  BIGINT PRIMARY KEY,
    at      BIGINT NOT NULL,
    job     BIGINT,
    attempt BIGINT,
    kind    TEXT   NOT NULL,
    actor   TEXT   NOT NULL,
    message TEXT   NOT NULL
);

CREATE INDEX events_by_job ON events (job, number);

CREATE FUNCTION events_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are append-only';
END;
$$;

-- Statement level, so that TRUNCATE and statements that match no row are refused too.
CREATE TRIGGER events_are_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION events_refuse_change();

-- One row, locked and written by every commit.
CREATE TABLE counters (
    only_row          BIGINT PRIMARY KEY CHECK (only_row = 1),
    job_last_id       BIGINT NOT NULL,
    event_last_number BIGINT NOT NULL
) WITH (fillfactor = 50);

INSERT INTO counters (only_row, job_last_id, event_last_number) VALUES (1, 0, 0);
