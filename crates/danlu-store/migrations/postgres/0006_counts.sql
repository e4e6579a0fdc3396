-- How many jobs of each owner are in each status (the outcome of those that have ended, the state of the others), kept
-- by every commit, so that counting does not read every job.
CREATE TABLE job_counts (
    workspace TEXT   NOT NULL,
    owner     TEXT   NOT NULL,
    status    TEXT   NOT NULL,
    number    BIGINT NOT NULL,
    PRIMARY KEY (workspace, owner, status)
) WITH (fillfactor = 50);

INSERT INTO job_counts (workspace, owner, status, number)
    SELECT workspace, owner, COALESCE(outcome, state), COUNT(*) FROM jobs GROUP BY 1, 2, 3;

-- Lists by status come in the order of ids from one of these.
DROP INDEX jobs_by_state;
DROP INDEX jobs_by_outcome;
DROP INDEX jobs_by_workspace;
CREATE INDEX jobs_by_status ON jobs (COALESCE(outcome, state), id);
CREATE INDEX jobs_by_workspace_status ON jobs (workspace, COALESCE(outcome, state), id);
CREATE INDEX jobs_by_owner_status ON jobs (owner, COALESCE(outcome, state), id);

-- History is deleted with its job, and never before it.
DROP TRIGGER events_are_never_changed ON events;
DELETE FROM events WHERE job IS NOT NULL AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = events.job);
CREATE TRIGGER events_are_never_changed BEFORE UPDATE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION events_refuse_change();

CREATE FUNCTION events_refuse_early_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.job IS NULL OR EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job) THEN
        RAISE EXCEPTION 'events are append-only';
    END IF;
    RETURN OLD;
END;
$$;
CREATE TRIGGER events_are_deleted_after_their_job BEFORE DELETE ON events
    FOR EACH ROW EXECUTE FUNCTION events_refuse_early_delete();
