-- `identity` names the data folder that this database belongs to. `epoch` grows by one whenever a server takes the lead;
-- whoever writes compares it with its own.
ALTER TABLE counters ADD COLUMN identity TEXT;
ALTER TABLE counters ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
