-- Accounts, tokens, members: JSON in `value`. A few thousand rows that a server reads once and keeps in memory.
CREATE TABLE directory (
    kind  TEXT NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- What was done by whom: append-only, each entry sealed over the one before.
CREATE TABLE audit (
    number  INTEGER NOT NULL PRIMARY KEY,
    by_whom TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    entry   TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_by_whom ON audit (by_whom, number);
CREATE INDEX audit_subject ON audit (subject, number);
