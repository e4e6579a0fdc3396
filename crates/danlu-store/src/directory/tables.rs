//! Which column of which table a field of a row is in. Migration 9 has the reasons for the tables themselves.

/// A table of people.
#[derive(Debug)]
pub(crate) struct PeopleTable {
    /// What the audit and errors call its rows.
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    /// How many of the columns, the first ones, are the key. A table without a key has one row.
    pub(crate) keys: usize,
    /// Parts the values of a key in one text.
    pub(crate) between_keys: &'static str,
    pub(crate) columns: &'static [Column],
    /// Rows are changed in place, and count it in the column `generation`.
    pub(crate) has_generation: bool,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// JSON pointer of the field; `None` where the column is part of the key only.
    pub(crate) field: Option<&'static str>,
    pub(crate) form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Number,
    /// 0 or 1: the two databases have no type for it in common.
    Flag,
    /// JSON of a part of the row.
    Json,
    /// JSON of the whole row, as it was written.
    Document,
}

#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) accounts: PeopleTable,
    pub(crate) tokens: PeopleTable,
    pub(crate) memberships: PeopleTable,
    pub(crate) workspaces: PeopleTable,
    pub(crate) scheduling_policy: PeopleTable,
    pub(crate) milestones: PeopleTable,
    pub(crate) ssh_keys: PeopleTable,
    pub(crate) access_keys: PeopleTable,
    pub(crate) invitations: PeopleTable,
    pub(crate) external_identities: PeopleTable,
    pub(crate) former_accounts: PeopleTable,
    pub(crate) former_workspaces: PeopleTable,
    pub(crate) unix_users: PeopleTable,
    pub(crate) secrets: PeopleTable,
    pub(crate) audit_head: PeopleTable,
}

impl Tables {
    /// Those that others refer to come first.
    pub(crate) fn all(&self) -> [&PeopleTable; 15] {
        [
            &self.accounts,
            &self.tokens,
            &self.memberships,
            &self.workspaces,
            &self.scheduling_policy,
            &self.milestones,
            &self.ssh_keys,
            &self.access_keys,
            &self.invitations,
            &self.external_identities,
            &self.former_accounts,
            &self.former_workspaces,
            &self.unix_users,
            &self.secrets,
            &self.audit_head,
        ]
    }
}

const fn key(name: &'static str) -> Column {
    Column { name, field: None, form: Form::Text }
}

const fn text(name: &'static str, field: &'static str) -> Column {
    Column { name, field: Some(field), form: Form::Text }
}

const fn number(name: &'static str, field: &'static str) -> Column {
    Column { name, field: Some(field), form: Form::Number }
}

const fn flag(name: &'static str, field: &'static str) -> Column {
    Column { name, field: Some(field), form: Form::Flag }
}

const DOCUMENT: Column = Column { name: "rules", field: None, form: Form::Document };

const fn table(
    kind: &'static str,
    name: &'static str,
    keys: usize,
    columns: &'static [Column],
) -> PeopleTable {
    PeopleTable { kind, name, keys, between_keys: "/", columns, has_generation: false }
}

const FORMER: &[Column] = &[key("name"), text("deleted_at", "/deleted_at")];

pub(crate) static TABLES: Tables = Tables {
    accounts: PeopleTable {
        has_generation: true,
        ..table(
            "account",
            "accounts",
            1,
            &[
                text("name", "/name"),
                text("display_name", "/display_name"),
                text("email", "/email"),
                flag("admin", "/admin"),
                text("status", "/standing"),
                text("password", "/password"),
                text("created_at", "/created_at"),
                text("asks_for", "/asks_for"),
                flag("unix_user", "/unix_user"),
                text("mfa_secret", "/second_factor/secret"),
                flag("mfa_confirmed", "/second_factor/confirmed"),
                number("mfa_last_step", "/second_factor/last_step"),
                Column {
                    name: "mfa_recovery_codes",
                    field: Some("/second_factor/recovery"),
                    form: Form::Json,
                },
            ],
        )
    },
    tokens: table(
        "token",
        "tokens",
        1,
        &[
            key("secret_hash"),
            text("id", "/id"),
            text("account", "/account"),
            text("kind", "/kind"),
            text("name", "/name"),
            text("scope", "/scope"),
            text("created_at", "/created_at"),
            text("expires_at", "/expires_at"),
            text("session_ends", "/session_ends"),
            text("root", "/root"),
            text("made_with", "/made_with"),
            text("made_by", "/made_by"),
        ],
    ),
    memberships: table(
        "member",
        "memberships",
        2,
        &[key("workspace"), key("account"), text("role", "/role"), flag("from_group", "/from_group")],
    ),
    workspaces: table("workspace", "workspaces", 1, &[key("name"), DOCUMENT]),
    scheduling_policy: table("sharing", "scheduling_policy", 0, &[DOCUMENT]),
    milestones: table("milestone", "milestones", 1, &[key("name")]),
    ssh_keys: table(
        "ssh_key",
        "ssh_keys",
        1,
        &[
            key("fingerprint"),
            text("id", "/id"),
            text("account", "/account"),
            text("name", "/name"),
            text("public_key", "/key"),
            text("created_at", "/created_at"),
        ],
    ),
    access_keys: table(
        "s3_key",
        "access_keys",
        1,
        &[
            key("access_key"),
            text("account", "/account"),
            text("name", "/name"),
            text("sealed_secret", "/secret"),
            text("created_at", "/created_at"),
        ],
    ),
    invitations: table(
        "invitation",
        "invitations",
        1,
        &[
            key("secret_hash"),
            text("id", "/id"),
            text("workspace", "/workspace"),
            text("role", "/role"),
            text("invited_by", "/by"),
            text("created_at", "/created_at"),
            text("expires_at", "/expires_at"),
            text("made_with", "/made_with"),
        ],
    ),
    external_identities: PeopleTable {
        between_keys: " ",
        ..table(
            "subject",
            "external_identities",
            2,
            &[key("issuer"), key("subject"), text("account", "/account"), text("linked_at", "/linked_at")],
        )
    },
    former_accounts: table("former_account", "former_accounts", 1, FORMER),
    former_workspaces: table("former_workspace", "former_workspaces", 1, FORMER),
    unix_users: table("unix_user", "unix_users", 1, &[key("account"), number("uid", "/uid")]),
    secrets: table(
        "secret",
        "secrets",
        2,
        &[
            key("workspace"),
            key("name"),
            text("sealed", "/sealed"),
            text("changed_at", "/changed_at"),
            text("changed_by", "/changed_by"),
        ],
    ),
    audit_head: table(
        "audit_head",
        "audit_head",
        0,
        &[number("number", "/number"), text("entry_code", "/entry"), text("directory_code", "/directory")],
    ),
};
