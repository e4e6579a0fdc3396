-- Which jobs have a text somewhere in their names, without a look at every name. The words of a job are all pieces of one,
-- two and three bytes of its name, in lower case and as hexadecimal digits; and its workspace (`w…`) and owner (`o…`), so
-- that a search among some people's jobs does not walk those of all others. In a table of its own, because every change of
-- a job's state would write each of its words anew into an index of `jobs`.
CREATE TABLE job_search (
    job   BIGINT NOT NULL PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    words TEXT[] NOT NULL
);

CREATE FUNCTION job_words(name TEXT, workspace TEXT, owner TEXT) RETURNS TEXT[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(DISTINCT upper(encode(substr(named.folded, start, length), 'hex')))
            || ('w' || upper(encode(convert_to(workspace, 'UTF8'), 'hex')))
            || ('o' || upper(encode(convert_to(owner, 'UTF8'), 'hex')))
        FROM (SELECT convert_to(lower(name COLLATE "C"), 'UTF8') AS folded) AS named,
            generate_series(1, 3) AS length,
            generate_series(1, octet_length(named.folded) - length + 1) AS start
$$;

INSERT INTO job_search (job, words) SELECT id, job_words(name, workspace, owner) FROM jobs;
CREATE INDEX job_search_by_word ON job_search USING gin (words);

CREATE FUNCTION job_search_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO job_search (job, words) VALUES (NEW.id, job_words(NEW.name, NEW.workspace, NEW.owner))
        ON CONFLICT (job) DO UPDATE SET words = excluded.words;
    RETURN NULL;
END;
$$;
CREATE TRIGGER job_search_follows AFTER INSERT OR UPDATE OF name, workspace, owner ON jobs
    FOR EACH ROW EXECUTE FUNCTION job_search_follow();
