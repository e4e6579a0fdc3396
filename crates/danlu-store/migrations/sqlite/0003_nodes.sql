-- What is known of a node beyond what its engine says: JSON in `note`. Nodes of which there is nothing to say have no row.
CREATE TABLE node_notes (
    node TEXT NOT NULL PRIMARY KEY,
    note TEXT NOT NULL
) STRICT, WITHOUT ROWID;
