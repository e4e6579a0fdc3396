//! The tables of people: [`TABLES`] says which column a field is in, and everything here follows it.

use serde_json::{Map, Value};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection as _, Database, Executor, Pool, Row as _, query, query_as};

use super::{Connection, Db, Row, SNAPSHOT, push_placeholder};
use crate::directory::{Column, Form, PeopleTable, Stored, TABLES};
use crate::error::{StaleRow, UnreadableRow};
use crate::row::{number, text};
use crate::{DirectoryRow, StoreError};

type Statement = Query<'static, Db, <Db as Database>::Arguments>;

/// Columns that name an account which must be there.
const OWNERS: [(&str, &str, &str, &str); 6] = [
    ("token", "tokens", "secret_hash", "account"),
    ("member", "memberships", "workspace", "account"),
    ("ssh_key", "ssh_keys", "fingerprint", "account"),
    ("s3_key", "access_keys", "access_key", "account"),
    ("invitation", "invitations", "secret_hash", "invited_by"),
    ("subject", "external_identities", "subject", "account"),
];

/// All rows as they are at one moment.
pub(super) async fn read_all(pool: &Pool<Db>) -> Result<Vec<DirectoryRow>, StoreError> {
    let read = async {
        let mut connection = pool.acquire().await?;
        let mut transaction = connection.begin_with(SNAPSHOT).await?;
        let mut rows = Vec::new();
        for table in TABLES.all() {
            let sql = format!("SELECT {} FROM {}", column_names(table), table.name);
            for row in query(AssertSqlSafe(sql)).fetch_all(&mut *transaction).await? {
                rows.push(read_row(table, &row)?);
            }
        }
        transaction.commit().await?;
        Ok(rows)
    };
    read.await.map_err(|error| StoreError::of("read the accounts", error))
}

/// Writes a row, or takes it away. One that was changed since it was read is not written.
pub(super) async fn write_row(connection: &mut Connection, row: &DirectoryRow) -> Result<(), sqlx::Error> {
    let (table, keys, value) = row.parts();
    let Some(value) = value else {
        return delete(connection, table, &keys).await.map(drop);
    };
    match row.generation() {
        Some(generation) if generation > 1 => {
            let changed = update(connection, table, &keys, &value, generation).await?;
            if changed == 0 {
                let stale = StaleRow { kind: table.kind, key: keys.join(table.between_keys) };
                return Err(sqlx::Error::Encode(Box::new(stale)));
            }
            Ok(())
        }
        Some(generation) => insert(connection, table, &keys, &value, Some(generation)).await,
        None => {
            delete(connection, table, &keys).await?;
            insert(connection, table, &keys, &value, None).await
        }
    }
}

/// Brings the rows of `directory`, which were JSON by kind and key, into their tables: a part of migration 9. It reads and
/// writes rows as they are today; the first change of these tables gives the migration a copy of its own.
pub(super) async fn carry_over(connection: &mut Connection) -> Result<(), sqlx::Error> {
    let mut old: Vec<(String, String, String)> =
        query_as("SELECT kind, key, value FROM directory").fetch_all(&mut *connection).await?;
    old.sort_unstable();
    for (kind, key, value) in old {
        let row = of_directory(&kind, &key, &value)
            .map_err(|why| unreadable(UnreadableRow { kind: kind.clone(), key: key.clone(), why }))?;
        write_row(connection, &row).await?;
    }
    // The commit would refuse them as well, and not say which.
    for (kind, table, key, account) in OWNERS {
        let sql = format!(
            "SELECT {key}, {account} FROM {table} WHERE {account} NOT IN (SELECT name FROM accounts) LIMIT 1"
        );
        let found: Option<(String, String)> =
            query_as(AssertSqlSafe(sql)).fetch_optional(&mut *connection).await?;
        if let Some((key, account)) = found {
            let why = format!("its account `{account}` is missing");
            return Err(unreadable(UnreadableRow { kind: kind.to_owned(), key, why }));
        }
    }
    connection.execute("DROP TABLE directory").await?;
    Ok(())
}

fn of_directory(kind: &str, key: &str, value: &str) -> Result<DirectoryRow, String> {
    let table = TABLES.all().into_iter().find(|table| table.kind == kind);
    let table = table.ok_or_else(|| "its kind is unknown".to_owned())?;
    let keys = match table.keys {
        0 => Vec::new(),
        1 => vec![key.to_owned()],
        _ => {
            let (first, second) = key
                .split_once(table.between_keys)
                .ok_or_else(|| format!("its key has no `{}`", table.between_keys))?;
            vec![first.to_owned(), second.to_owned()]
        }
    };
    let fields = serde_json::from_str(value).map_err(|error| error.to_string())?;
    DirectoryRow::read(kind, &keys, Stored { fields, document: Some(value.to_owned()), generation: 1 })
}

fn unreadable(row: UnreadableRow) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(row))
}

fn read_row(table: &'static PeopleTable, row: &Row) -> Result<DirectoryRow, sqlx::Error> {
    let keys: Vec<String> = (0..table.keys).map(|index| row.try_get(index)).collect::<Result<_, _>>()?;
    let mut stored = Stored { fields: Value::Null, document: None, generation: 0 };
    let read = fields_of(table, row, &mut stored)?;
    read.and_then(|()| DirectoryRow::read(table.kind, &keys, stored)).map_err(|why| {
        let key = keys.join(table.between_keys);
        unreadable(UnreadableRow { kind: table.kind.to_owned(), key, why })
    })
}

/// The inner error is what is wrong with a value.
fn fields_of(table: &PeopleTable, row: &Row, stored: &mut Stored) -> Result<Result<(), String>, sqlx::Error> {
    for (index, column) in table.columns.iter().enumerate() {
        let value = match column.form {
            Form::Document => {
                stored.document = row.try_get(index)?;
                continue;
            }
            Form::Text => row.try_get::<Option<String>, _>(index)?.map(Value::from),
            Form::Number => row.try_get::<Option<i64>, _>(index)?.map(Value::from),
            Form::Flag => row.try_get::<Option<i64>, _>(index)?.map(|flag| Value::from(flag != 0)),
            Form::Json => match row.try_get::<Option<String>, _>(index)? {
                None => None,
                Some(text) => match serde_json::from_str(&text) {
                    Ok(value) => Some(value),
                    Err(error) => return Ok(Err(format!("`{}`: {error}", column.name))),
                },
            },
        };
        if let (Some(field), Some(value)) = (column.field, value) {
            put(&mut stored.fields, field, value);
        }
    }
    if table.has_generation {
        stored.generation = row.try_get::<i64, _>(table.columns.len())?.cast_unsigned();
    }
    Ok(Ok(()))
}

/// At a pointer of one or two steps, with the objects on the way.
fn put(fields: &mut Value, pointer: &str, value: Value) {
    let mut place = fields;
    for step in pointer.split('/').skip(1) {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[step];
    }
    *place = value;
}

/// What a column gets.
enum Bound {
    Text(Option<String>),
    Number(Option<i64>),
}

fn values(table: &PeopleTable, keys: &[String], value: &str) -> Result<Vec<Bound>, sqlx::Error> {
    let fields: Value = serde_json::from_str(value).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let mut values = Vec::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        let key = keys.get(index).map(|key| text(key).into_owned());
        let field = column.field.and_then(|pointer| fields.pointer(pointer));
        values.push(match column.form {
            Form::Document => Bound::Text(Some(text(value).into_owned())),
            Form::Text => Bound::Text(key.or_else(|| Some(text(field?.as_str()?).into_owned()))),
            Form::Json => Bound::Text(field.map(Value::to_string)),
            Form::Number => Bound::Number(field.and_then(Value::as_u64).map(number).transpose()?),
            Form::Flag => Bound::Number(flag(&fields, column)),
        });
    }
    Ok(values)
}

/// A flag that is not there is 0, and nothing where the object is not there that it would be in.
fn flag(fields: &Value, column: &Column) -> Option<i64> {
    let pointer = column.field?;
    let (object, _) = pointer.rsplit_once('/')?;
    let is_set = fields.pointer(pointer).and_then(Value::as_bool).unwrap_or_default();
    fields.pointer(object).map(|_| i64::from(is_set))
}

fn column_names(table: &PeopleTable) -> String {
    let mut names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    if table.has_generation {
        names.push("generation");
    }
    names.join(", ")
}

async fn delete(
    connection: &mut Connection,
    table: &PeopleTable,
    keys: &[String],
) -> Result<(), sqlx::Error> {
    let mut sql = format!("DELETE FROM {}", table.name);
    for (index, column) in table.columns[..table.keys].iter().enumerate() {
        sql.push_str(if index == 0 { " WHERE " } else { " AND " });
        sql.push_str(column.name);
        sql.push_str(" = ");
        push_placeholder(&mut sql, index + 1);
    }
    let statement = keys.iter().fold(statement(sql), |statement, key| statement.bind(text(key).into_owned()));
    statement.execute(connection).await.map(drop)
}

async fn insert(
    connection: &mut Connection,
    table: &PeopleTable,
    keys: &[String],
    value: &str,
    generation: Option<u64>,
) -> Result<(), sqlx::Error> {
    let mut values = values(table, keys, value)?;
    values.extend(generation.map(number).transpose()?.map(|generation| Bound::Number(Some(generation))));
    let mut sql = format!("INSERT INTO {} ({}) VALUES (", table.name, column_names(table));
    for index in 1..=values.len() {
        if index > 1 {
            sql.push_str(", ");
        }
        push_placeholder(&mut sql, index);
    }
    sql.push(')');
    bind_all(statement(sql), values).execute(connection).await.map(drop)
}

/// How many rows were changed: none, where another change came before.
async fn update(
    connection: &mut Connection,
    table: &PeopleTable,
    keys: &[String],
    value: &str,
    generation: u64,
) -> Result<u64, sqlx::Error> {
    let mut values = values(table, keys, value)?;
    values.push(Bound::Number(Some(number(generation)?)));
    let mut sql = format!("UPDATE {} SET ", table.name);
    for (index, column) in table.columns.iter().map(|column| column.name).chain(["generation"]).enumerate() {
        if index > 0 {
            sql.push_str(", ");
        }
        sql.push_str(column);
        sql.push_str(" = ");
        push_placeholder(&mut sql, index + 1);
    }
    let mut next = values.len();
    for (index, column) in table.columns[..table.keys].iter().map(|column| column.name).enumerate() {
        sql.push_str(if index == 0 { " WHERE " } else { " AND " });
        sql.push_str(column);
        sql.push_str(" = ");
        next += 1;
        push_placeholder(&mut sql, next);
    }
    sql.push_str(" AND generation = ");
    push_placeholder(&mut sql, next + 1);
    values.extend(keys.iter().map(|key| Bound::Text(Some(text(key).into_owned()))));
    values.push(Bound::Number(Some(number(generation - 1)?)));
    Ok(bind_all(statement(sql), values).execute(connection).await?.rows_affected())
}

fn bind_all(statement: Statement, values: Vec<Bound>) -> Statement {
    values.into_iter().fold(statement, |statement, value| match value {
        Bound::Text(text) => statement.bind(text),
        Bound::Number(number) => statement.bind(number),
    })
}

/// Put together from the names in [`TABLES`] and placeholders only; values are bound.
fn statement(sql: String) -> Statement {
    query(AssertSqlSafe(sql))
}
