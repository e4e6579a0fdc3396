-- SHA-256 of what was submitted with the key. NULL for submissions from before: those are taken to be the same.
ALTER TABLE submissions ADD COLUMN digest TEXT;
