-- Which code snapshot a job names, so that those which no job names can be found.
ALTER TABLE jobs ADD COLUMN code TEXT;

-- By a pattern: PostgreSQL's JSON refuses a text with an escaped NUL anywhere in it. Inside another field the quotes would
-- be escaped.
UPDATE jobs SET code = substring(spec FROM '"code":"(sha256:[0-9a-f]{64})"');

CREATE INDEX jobs_by_code ON jobs (code) WHERE code IS NOT NULL;
