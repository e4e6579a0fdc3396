-- Which code snapshot a job names, so that those which no job names can be found.
ALTER TABLE jobs ADD COLUMN code TEXT;

UPDATE jobs SET code = json_extract(spec, '$.code');

CREATE INDEX jobs_by_code ON jobs (code) WHERE code IS NOT NULL;
