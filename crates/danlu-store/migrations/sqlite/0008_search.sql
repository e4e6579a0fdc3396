-- Which jobs have a text somewhere in their names, without a look at every name. The words of a job are all pieces of one,
-- two and three bytes of its name, in lower case and as hexadecimal digits, so that they are words whatever is in a name;
-- and its workspace (`w…`) and owner (`o…`), so that a search among some people's jobs does not walk those of all others.
-- The index keeps no text: a job that has all the words of what is looked for is then compared with it.
-- Without `contentless_delete`, which would be simpler: `sqlite3` programs older than 3.43 refuse a file that has it, and
-- people recover damaged files with those. So a row is taken out by naming its words.
CREATE VIRTUAL TABLE job_search USING fts5 (words, content = '', detail = none, tokenize = 'ascii');

CREATE VIEW job_words (id, words) AS
    SELECT id, COALESCE((
        WITH RECURSIVE piece (start, length) AS (
            SELECT 1, 1
            UNION ALL
            SELECT CASE length WHEN 3 THEN start + 1 ELSE start END, CASE length WHEN 3 THEN 1 ELSE length + 1 END
                FROM piece WHERE start <= length(named.folded)
        )
        SELECT group_concat(hex(substr(named.folded, start, length)), ' ')
            FROM piece WHERE start + length <= length(named.folded) + 1
    ), '') || ' w' || hex(workspace) || ' o' || hex(owner)
    FROM (SELECT id, workspace, owner, CAST(lower(name) AS BLOB) AS folded FROM jobs) AS named;

INSERT INTO job_search (rowid, words) SELECT id, words FROM job_words;

CREATE TRIGGER job_search_is_told_of_new_jobs AFTER INSERT ON jobs
BEGIN
    INSERT INTO job_search (rowid, words) SELECT id, words FROM job_words WHERE id = NEW.id;
END;

-- Before the row changes or goes: its words are those of the row as it is.
CREATE TRIGGER job_search_forgets_what_changes BEFORE UPDATE OF name, workspace, owner ON jobs
BEGIN
    INSERT INTO job_search (job_search, rowid, words) SELECT 'delete', id, words FROM job_words WHERE id = OLD.id;
END;

CREATE TRIGGER job_search_is_told_of_changes AFTER UPDATE OF name, workspace, owner ON jobs
BEGIN
    INSERT INTO job_search (rowid, words) SELECT id, words FROM job_words WHERE id = NEW.id;
END;

CREATE TRIGGER job_search_is_told_of_deletions BEFORE DELETE ON jobs
BEGIN
    INSERT INTO job_search (job_search, rowid, words) SELECT 'delete', id, words FROM job_words WHERE id = OLD.id;
END;
