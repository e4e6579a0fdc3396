-- What is known of people, in tables instead of JSON by kind and key. The rows of `directory` are carried over by the program
-- (`people::carry_over`), which can say which row it cannot read, in the same transaction.
--
-- A server reads all of it once and keeps it in memory; the columns are for people with a SQL client, for keys and for checks.
-- Times are texts as in JSON, because the proof of the audit covers them to the nanosecond. Flags are 0 or 1. Foreign keys are
-- checked at the commit: the rows of one change come in any order. They delete nothing by themselves, so that no row goes without
-- the proof of the audit being told.
CREATE TABLE accounts (
    name               TEXT   NOT NULL PRIMARY KEY,
    display_name       TEXT,
    email              TEXT,
    admin              INTEGER NOT NULL CHECK (admin IN (0, 1)),
    status             TEXT   NOT NULL,
    -- Argon2id, as a PHC string.
    password           TEXT,
    created_at         TEXT   NOT NULL,
    -- The workspace whose owners may approve the account while it waits: a join request.
    asks_for           TEXT,
    unix_user          INTEGER NOT NULL CHECK (unix_user IN (0, 1)),
    -- Sealed with the key of the data folder.
    mfa_secret         TEXT,
    mfa_confirmed      INTEGER CHECK (mfa_confirmed IN (0, 1)),
    mfa_last_step      INTEGER,
    -- A JSON list of hashes.
    mfa_recovery_codes TEXT,
    -- Grows with each change, which names the one it was made from: accounts are read, changed and written. The rows of all
    -- other tables are written whole or taken away.
    generation         INTEGER NOT NULL CHECK (generation > 0),
    CHECK ((mfa_secret IS NULL) = (mfa_confirmed IS NULL) AND (mfa_secret IS NULL) = (mfa_recovery_codes IS NULL))
) STRICT, WITHOUT ROWID;

-- Of programs, of sessions, and of one-time links (`kind`).
CREATE TABLE tokens (
    secret_hash  TEXT NOT NULL PRIMARY KEY,
    id           TEXT NOT NULL,
    account      TEXT NOT NULL REFERENCES accounts (name) DEFERRABLE INITIALLY DEFERRED,
    kind         TEXT NOT NULL,
    name         TEXT NOT NULL,
    scope        TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    expires_at   TEXT,
    session_ends TEXT,
    root         TEXT,
    made_with    TEXT,
    made_by      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_account ON tokens (account);

-- A workspace need not have rules, and then has no row in `workspaces`.
CREATE TABLE memberships (
    workspace  TEXT   NOT NULL,
    account    TEXT   NOT NULL REFERENCES accounts (name) DEFERRABLE INITIALLY DEFERRED,
    role       TEXT   NOT NULL,
    -- Given by a group of the identity provider.
    from_group INTEGER NOT NULL CHECK (from_group IN (0, 1)),
    PRIMARY KEY (workspace, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_by_account ON memberships (account);

-- `rules` is JSON: a document that is given and read as a whole.
CREATE TABLE workspaces (
    name  TEXT NOT NULL PRIMARY KEY,
    rules TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE scheduling_policy (
    only_row INTEGER NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_row = 1),
    rules    TEXT   NOT NULL
) STRICT, WITHOUT ROWID;

-- What has happened once and for all.
CREATE TABLE milestones (
    name TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE ssh_keys (
    fingerprint TEXT NOT NULL PRIMARY KEY,
    id          TEXT NOT NULL,
    account     TEXT NOT NULL REFERENCES accounts (name) DEFERRABLE INITIALLY DEFERRED,
    name        TEXT NOT NULL,
    public_key  TEXT NOT NULL,
    created_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ssh_keys_by_account ON ssh_keys (account);

CREATE TABLE access_keys (
    access_key    TEXT NOT NULL PRIMARY KEY,
    account       TEXT NOT NULL REFERENCES accounts (name) DEFERRABLE INITIALLY DEFERRED,
    name          TEXT NOT NULL,
    sealed_secret TEXT NOT NULL,
    created_at    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX access_keys_by_account ON access_keys (account);

CREATE TABLE invitations (
    secret_hash TEXT NOT NULL PRIMARY KEY,
    id          TEXT NOT NULL,
    workspace   TEXT NOT NULL,
    role        TEXT NOT NULL,
    invited_by  TEXT NOT NULL REFERENCES accounts (name) DEFERRABLE INITIALLY DEFERRED,
    created_at  TEXT NOT NULL,
    expires_at  TEXT NOT NULL,
    made_with   TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX invitations_by_account ON invitations (invited_by);

CREATE TABLE external_identities (
    issuer    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    account   TEXT NOT NULL REFERENCES accounts (name) DEFERRABLE INITIALLY DEFERRED,
    linked_at TEXT,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX external_identities_by_account ON external_identities (account);

-- Names that are not given again, because jobs, files and entries of the audit keep them.
CREATE TABLE former_accounts (
    name       TEXT NOT NULL PRIMARY KEY,
    deleted_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE former_workspaces (
    name       TEXT NOT NULL PRIMARY KEY,
    deleted_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Outlives the account: what its jobs left on the disk belongs to the number.
CREATE TABLE unix_users (
    account TEXT   NOT NULL PRIMARY KEY,
    uid     INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

CREATE TABLE secrets (
    workspace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    sealed     TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

-- The proof of the last entry of the audit and of all rows above.
CREATE TABLE audit_head (
    only_row       INTEGER NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_row = 1),
    number         INTEGER NOT NULL,
    entry_code     TEXT   NOT NULL,
    directory_code TEXT   NOT NULL
) STRICT, WITHOUT ROWID;
