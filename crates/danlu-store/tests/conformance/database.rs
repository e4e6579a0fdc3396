//! An empty database for one test, and statements that go around the store.

use std::sync::Arc;

use danlu_store::Store;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;

use danlu_testkit::PostgresServer;

pub(crate) struct Database {
    pub(crate) url: String,
    /// What can be put beside the name of a file to find this database's own.
    pub(crate) kind: &'static str,
    _folder: Option<TempDir>,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("danlu.db").display());
        Database { url, kind: "sqlite", _folder: Some(folder) }
    }

    /// `None`, with a notice, where PostgreSQL is not installed and need not be.
    pub(crate) fn postgres() -> Option<Self> {
        let server = PostgresServer::shared()?;
        let url = server.create_database();
        Some(Database { url, kind: "postgres", _folder: None })
    }

    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        danlu_store::open(&self.url).await.unwrap()
    }

    /// Runs statements on a connection of its own.
    pub(crate) async fn execute(&self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        if self.kind == "sqlite" {
            let mut connection = SqliteConnection::connect(&self.url).await?;
            connection.execute(sql).await?;
            connection.close().await
        } else {
            let mut connection = PgConnection::connect(&self.url).await?;
            connection.execute(sql).await?;
            connection.close().await
        }
    }
}
