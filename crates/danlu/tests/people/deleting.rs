//! An account is deleted with all that is its, or not at all.

use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, proof, value};
use crate::tampering::{tamper, verify};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ada@laptop";
/// Tables that have rows of ada's, which a deletion writes to one after the other.
const TABLES: [&str; 8] = [
    "accounts",
    "tokens",
    "memberships",
    "ssh_keys",
    "access_keys",
    "secrets",
    "workspaces",
    "former_accounts",
];

/// What the API says of ada, and of what is hers.
async fn all_of_ada(site: &Site) -> Vec<(u16, Value)> {
    let mut said = Vec::new();
    for path in [
        "/accounts/ada",
        "/accounts/ada/tokens",
        "/accounts/ada/ssh_keys",
        "/accounts/ada/s3_keys",
        "/workspaces/lab/members",
        "/workspaces/ada",
        "/workspaces/ada/secrets",
    ] {
        let answer = site.ask("admin", "GET", path, &Value::Null).await;
        let mut said_of_it = value(&answer);
        for item in said_of_it["items"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
        {
            // Of tokens, and not stored.
            item.remove("last_used_at");
        }
        said.push((answer.status, said_of_it));
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_deleted_whole_or_not_at_all_wherever_the_database_fails() {
    let mut site = Site::new(&[]).await;
    for (method, path, body) in [
        ("POST", "/tokens", json!({ "name": "script", "scope": "read", "proof": proof() })),
        ("POST", "/accounts/ada/ssh_keys", json!({ "key": KEY, "proof": proof() })),
        ("POST", "/accounts/ada/s3_keys", json!({ "name": "bucket", "proof": proof() })),
        ("PUT", "/workspaces/ada/secrets/wandb", json!({ "value": "hers" })),
    ] {
        let answer = site.ask("ada", method, path, &body).await;
        assert!(answer.status < 300, "{path}: {}", answer.body);
    }
    let own_rules = json!({ "idle": { "after": "1h" } });
    let answer = site.ask("admin", "PUT", "/workspaces/ada", &own_rules).await;
    assert!(answer.status < 300, "{}", answer.body);
    let before = all_of_ada(&site).await;
    assert!(before.iter().all(|(status, _)| *status == 200), "{before:?}");

    for table in TABLES.iter().chain(&["audit", "audit_head"]) {
        let when =
            if ["former_accounts", "audit", "audit_head"].contains(table) { "insert" } else { "delete" };
        let refuse = format!(
            "db.execute('create trigger refuse before {when} on {table} begin select raise(abort, \"no\"); end')"
        );
        tamper(&site.server.data(), &refuse);
        let refused = site.ask("admin", "DELETE", "/accounts/ada", &Value::Null).await;
        assert!(refused.status >= 500, "{table}: {} {}", refused.status, refused.body);
        assert_eq!(all_of_ada(&site).await, before, "{table}");
        tamper(&site.server.data(), "db.execute('drop trigger refuse')");
        let (well, said) = verify(&site.server.data(), &[]).await;
        assert!(well, "{table}: {said}");
    }
    site.server.kill();
    site.server.restart().await;
    site.again();
    assert_eq!(all_of_ada(&site).await, before, "nor on the disk");
    assert_eq!(site.sign_in("ada", PASSWORD).await.status, 200);

    assert_eq!(site.ask("admin", "DELETE", "/accounts/ada", &Value::Null).await.status, 204);
    let audit = value(&site.ask("admin", "GET", "/audit?limit=1000", &Value::Null).await);
    let last = audit["items"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["action"], &last["before"]["secrets"]), (&json!("account.delete"), &json!(["wandb"])));
    let left = "for table, column in {'tokens': 'account', 'memberships': 'account', 'ssh_keys': 'account', \
                'access_keys': 'account', 'secrets': 'workspace', 'workspaces': 'name', 'accounts': 'name'}.items():\n    \
                left = db.execute(f\"select count(*) from {table} where {column} = 'ada'\").fetchone()[0]\n    \
                assert left == 0, table";
    tamper(&site.server.data(), left);
    let (well, said) = verify(&site.server.data(), &[]).await;
    assert!(well, "{said}");
    assert_eq!(site.ask("admin", "GET", "/accounts/ada", &Value::Null).await.status, 404);
}
