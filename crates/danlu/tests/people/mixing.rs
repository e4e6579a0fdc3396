//! What belongs to one owner, asked for together with what belongs to another: every operation that names two things, or one in its
//! path and one in its body or query. Which those are is read from the API's description; one that nobody has thought about fails.

use serde_json::{Map, Value, json};

use crate::matrix::recipe;
use crate::site::{PASSWORD, Site, proof, value};

const SSH_KEYS: [&str; 2] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4g",
];
/// Fields of bodies and queries by which somebody's things are named.
const NAMING: [&str; 7] = ["workspace", "account", "job", "owner", "by", "subject", "workspaces"];
const REFUSED: [u16; 4] = [403, 404, 409, 422];

/// An owner of a workspace, with one of everything.
struct Side {
    account: &'static str,
    session: String,
    workspace: &'static str,
    job: String,
    token: String,
    ssh_key: String,
    s3_key: String,
    invitation: String,
    applicant: String,
    member: String,
    secret: String,
}

impl Side {
    async fn new(site: &Site, account: &'static str, workspace: &'static str, ssh_key: &str) -> Self {
        let admin = async |method: &str, path: &str, body: Value| {
            let answer = site.ask("admin", method, path, &body).await;
            assert!(answer.status < 300, "{method} {path}: {}", answer.body);
        };
        let member = format!("member-of-{workspace}");
        for name in [account, &member] {
            admin("POST", "/accounts", json!({ "name": name, "password": PASSWORD })).await;
        }
        admin("PUT", &format!("/workspaces/{workspace}"), json!({})).await;
        for (name, role) in [(account, "owner"), (&member, "member")] {
            admin("PUT", &format!("/workspaces/{workspace}/members/{name}"), json!({ "role": role })).await;
        }
        let session = value(&site.sign_in(account, PASSWORD).await)["secret"].as_str().unwrap().to_owned();
        let made = async |method: &str, path: &str, body: Value, pointer: &str| {
            let answer = site.ask_with(Some(&session), method, path, &body).await;
            assert!(answer.status < 300, "{method} {path}: {}", answer.body);
            match (!pointer.is_empty()).then(|| value(&answer).pointer(pointer).cloned()).flatten() {
                Some(Value::String(text)) => text,
                Some(other) => other.to_string(),
                None => String::new(),
            }
        };
        let spec = json!({ "command": "sleep 1000", "workspace": workspace, "cpus": "10m", "grace": "0s" });
        let job = made("POST", "/jobs", spec, "/id").await;
        made("POST", &format!("/jobs/{job}/hold"), Value::Null, "").await;
        let own = format!("/accounts/{account}");
        let place = format!("/workspaces/{workspace}");
        let secret = format!("{workspace}-token");
        let applicant = format!("asks-{workspace}");
        let asks = json!({ "name": applicant, "password": PASSWORD, "workspace": workspace });
        assert_eq!(site.ask("nobody", "POST", "/registration", &asks).await.status, 201);
        made("PUT", &format!("{place}/secrets/{secret}"), json!({ "value": "swordfish" }), "").await;
        Side {
            account,
            workspace,
            job,
            token: made(
                "POST",
                "/tokens",
                json!({ "name": "x", "scope": "read", "proof": proof() }),
                "/token/id",
            )
            .await,
            ssh_key: made(
                "POST",
                &format!("{own}/ssh_keys"),
                json!({ "key": ssh_key, "proof": proof() }),
                "/id",
            )
            .await,
            s3_key: made(
                "POST",
                &format!("{own}/s3_keys"),
                json!({ "name": "b", "proof": proof() }),
                "/key/access_key",
            )
            .await,
            invitation: made(
                "POST",
                &format!("{place}/invitations"),
                json!({ "role": "member" }),
                "/invitation/id",
            )
            .await,
            applicant,
            member,
            secret,
            session,
        }
    }

    /// What the owner sees of what is theirs.
    async fn looks(&self, site: &Site) -> Vec<(String, Value)> {
        let (account, workspace) = (self.account, self.workspace);
        let mut looks = Vec::new();
        for path in [
            format!("/workspaces/{workspace}"),
            format!("/workspaces/{workspace}/invitations"),
            format!("/workspaces/{workspace}/secrets"),
            format!("/workspaces/{workspace}/applicants"),
            format!("/workspaces/{workspace}/members"),
            format!("/accounts/{account}"),
            format!("/accounts/{account}/tokens"),
            format!("/accounts/{account}/ssh_keys"),
            format!("/accounts/{account}/s3_keys"),
            format!("/jobs/{}", self.job),
            format!("/jobs/counts?workspace={workspace}"),
        ] {
            let answer = site.ask_with(Some(&self.session), "GET", &path, &Value::Null).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let mut seen = value(&answer);
            // Looking is a use of the owner's session.
            for item in seen["items"].as_array_mut().into_iter().flatten() {
                item.as_object_mut().unwrap().remove("last_used_at");
            }
            looks.push((path, seen));
        }
        looks
    }

    /// What stands for a part of a path.
    fn part(&self, path: &str, part: &str) -> String {
        let own = match part {
            "name" if path.starts_with("/workspaces/") => self.workspace,
            "name" if path.starts_with("/accounts/") => self.account,
            "id" if path.contains("/tokens/") => &self.token,
            "id" if path.contains("/ssh_keys/") => &self.ssh_key,
            "id" if path.contains("/invitations/") => &self.invitation,
            "id" if path.starts_with("/jobs/") => &self.job,
            // No provider vouches for anybody here.
            "id" if path.contains("/identities/") => "1",
            "access_key" => &self.s3_key,
            "account" if path.contains("/applicants/") => &self.applicant,
            "account" if path.contains("/members/") => &self.member,
            "secret" => &self.secret,
            "worker" if path.starts_with("/jobs/") => "0",
            _ => {
                return nobodys(part)
                    .unwrap_or_else(|| panic!("nobody has said what `{part}` of `{path}` is"))
                    .to_owned();
            }
        };
        own.to_owned()
    }
}

/// Parts of paths by which nobody's things are told from another's.
fn nobodys(part: &str) -> Option<&'static str> {
    Some(match part {
        // Nodes and their devices are the platform's, and copies of code are found by what is in them.
        "name" => "no-such-node",
        "index" | "worker" => "0",
        "code" => "sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "report" => "report.html",
        // Only tokens of attempts open those; here persons ask.
        "allocation" => "1.slurm.0",
        "file" => "launch.json",
        "area" => "output",
        _ => return None,
    })
}

/// What an owner may well do with a name that somebody else has as well: it says why.
fn is_ones_own_to_do(operation: &str) -> bool {
    [
        // A name of a secret is one's workspace's own; the other's of the same name is not touched.
        "PUT /workspaces/{name}/secrets/{secret}",
        // Owners choose who is in their workspace; it gives them nothing of what those have elsewhere.
        "PUT /workspaces/{name}/members/{account}",
    ]
    .contains(&operation)
}

/// What waits stays as it is; what runs does not.
async fn cordon_all(site: &Site) {
    let nodes = value(&site.ask("admin", "GET", "/nodes", &Value::Null).await);
    for node in nodes["items"].as_array().unwrap() {
        let path = format!("/nodes/{}/cordon", node["name"].as_str().unwrap());
        assert_eq!(site.ask("admin", "POST", &path, &json!({ "why": "a test" })).await.status, 200);
    }
}

/// The parts in braces.
fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
}

/// The first part is of one, all others are of the other.
fn filled(path: &str, first: &Side, rest: &Side) -> String {
    let mut filled = path.to_owned();
    for (number, part) in parts(path).into_iter().enumerate() {
        let side = if number == 0 { first } else { rest };
        filled = filled.replacen(&format!("{{{part}}}"), &side.part(path, part), 1);
    }
    filled
}

/// The names of a body's fields: of its schema, or of a job's where it is a patch of one.
fn fields(document: &Value, operation: &Value) -> Vec<String> {
    let body = &operation["requestBody"];
    let schema = &body["content"]["application/json"]["schema"];
    let is_patch = body["description"].as_str().is_some_and(|said| said.contains("job's spec"));
    let named = |one: &Value| Some(one["$ref"].as_str()?.rsplit('/').next()?.to_owned());
    let schema = if is_patch {
        Some("JobSpec".to_owned())
    } else {
        named(schema).or_else(|| schema["oneOf"].as_array()?.iter().find_map(named))
    };
    let Some(schema) = schema else { return Vec::new() };
    let properties = document["components"]["schemas"][&schema]["properties"].as_object().cloned();
    properties.unwrap_or_default().into_iter().map(|(name, _)| name).collect()
}

/// Asks as `own` with a body that names what is the other's; `None` where nobody has thought about it.
fn body_with(operation: &str, field: &str, own: &Side, other: &Side) -> Option<Vec<(String, Value)>> {
    let path = operation.split_once(' ')?.1;
    let spec = |workspace: &str| json!({ "command": "true", "workspace": workspace, "cpus": "10m" });
    Some(match (operation, field) {
        ("POST /jobs", "workspace") => vec![(path.to_owned(), spec(other.workspace))],
        ("PATCH /jobs/{id}" | "POST /jobs/{id}/clone", "workspace") => vec![
            (filled(path, own, own), json!({ "workspace": other.workspace })),
            (filled(path, other, other), json!({ "workspace": own.workspace })),
        ],
        // Neither the present password nor a link is known.
        ("POST /password", "account") => {
            vec![(
                path.to_owned(),
                json!({ "account": other.member, "password": PASSWORD, "current": "swordfish and fish" }),
            )]
        }
        // Of sidecars, and of the platform's administrators.
        ("POST /sidecar/claim", "job") => vec![(
            path.to_owned(),
            json!({ "allocation": format!("{}.slurm.0", other.job), "job": 1, "nonce": "0123456789abcdef" }),
        )],
        ("PUT /sharing", "workspaces") => {
            vec![(path.to_owned(), json!({ "workspaces": { other.workspace: {} } }))]
        }
        // Anybody may ask to be let in, and is not in by asking.
        ("POST /registration", "workspace") => Vec::new(),
        _ => return None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn no_operation_reaches_what_is_anothers_through_what_is_ones_own() {
    let site = Site::new(&["--registration", "open"]).await;
    cordon_all(&site).await;
    let one = Side::new(&site, "olga", "attic", SSH_KEYS[0]).await;
    let another = Side::new(&site, "iris", "cellar", SSH_KEYS[1]).await;
    let document = value(&site.ask("admin", "GET", "/openapi.json", &Value::Null).await);
    let mut tried = Vec::new();
    for (own, other) in [(&one, &another), (&another, &one)] {
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, described) in methods.as_object().unwrap() {
                let operation = format!("{} {path}", method.to_uppercase());
                let mut asked = Vec::new();
                if parts(path).len() > 1 {
                    let body = recipe(&operation, 0, own.account, "no-such-node").unwrap().1;
                    asked.push((filled(path, other, own), body.clone()));
                    if nobodys(parts(path)[1]).is_none() {
                        asked.push((filled(path, own, other), body));
                    }
                }
                for field in
                    fields(&document, described).iter().filter(|field| NAMING.contains(&field.as_str()))
                {
                    let bodies = body_with(&operation, field, own, other);
                    asked.extend(bodies.unwrap_or_else(|| {
                        panic!("nobody has said how `{operation}` is asked for another's `{field}`: add it to `body_with`")
                    }));
                }
                let queries = described["parameters"].as_array().into_iter().flatten();
                let queries =
                    queries.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
                for query in queries.filter(|query| NAMING.contains(query)) {
                    sees_nothing(&site, &operation, query, own, other).await;
                    tried.push(format!("{operation}?{query}"));
                }
                if asked.is_empty() {
                    continue;
                }
                let before = other.looks(&site).await;
                for (path, body) in asked {
                    let answer =
                        site.ask_with(Some(&own.session), &method.to_uppercase(), &path, &body).await;
                    // Programs' operations know no persons; a wrong password is no more than that.
                    let is_unknown =
                        (path.starts_with("/sidecar/") || path == "/password") && answer.status == 401;
                    let is_allowed = is_ones_own_to_do(&operation)
                        && path.starts_with(&format!("/workspaces/{}", own.workspace));
                    assert!(
                        is_unknown || is_allowed || REFUSED.contains(&answer.status),
                        "{operation} as {path} by {}: {} {}",
                        own.account,
                        answer.status,
                        answer.body
                    );
                }
                assert_eq!(other.looks(&site).await, before, "after {operation} by {}", own.account);
                tried.push(operation);
            }
        }
    }
    assert!(tried.len() > 60, "only {} were tried: {tried:?}", tried.len());
}

/// A list that is narrowed to what is another's is refused, or has nothing in it.
async fn sees_nothing(site: &Site, operation: &str, query: &str, own: &Side, other: &Side) {
    let (method, path) = operation.split_once(' ').unwrap();
    let named = match query {
        "workspace" => other.workspace,
        "job" => &other.job,
        // Of the audit: who did something, and to what.
        "owner" | "by" | "subject" => other.account,
        _ => panic!("nobody has said what `{query}` of `{operation}` names"),
    };
    let answer =
        site.ask_with(Some(&own.session), method, &format!("{path}?{query}={named}"), &Value::Null).await;
    if REFUSED.contains(&answer.status) {
        return;
    }
    assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    let found = value(&answer);
    if let Some(items) = found["items"].as_array() {
        // What workspaces are promised is no secret (docs/security.md); who uses how much of it is.
        let is_public = operation == "GET /quota";
        let are_hidden =
            items.iter().all(|item| is_public && item["users"].as_array().is_none_or(Vec::is_empty));
        assert!(are_hidden, "{operation}?{query}={named}: {}", answer.body);
    } else {
        let counts: Map<String, Value> = found.as_object().cloned().unwrap_or_default();
        assert!(
            counts.values().all(|count| count == &json!(0) || count == &json!({})),
            "{operation}?{query}: {}",
            answer.body
        );
    }
}

/// Whoever is renamed would keep what their old name was given: names of accounts, workspaces and jobs' owners never change.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_workspaces_cannot_be_renamed_and_a_renamed_job_is_the_same_job() {
    let site = Site::new(&[]).await;
    let document = value(&site.ask("admin", "GET", "/openapi.json", &Value::Null).await);
    for schema in ["AccountChange", "Workspace"] {
        let properties = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        assert!(!properties.contains_key("name"), "{schema} has a name that can be set");
    }
    for (method, path) in [("PATCH", "/accounts/ada"), ("PUT", "/workspaces/lab")] {
        let answer = site.ask("admin", method, path, &json!({ "name": "other" })).await;
        assert_eq!(answer.status, 422, "{method} {path}: {}", answer.body);
    }
    cordon_all(&site).await;
    let job = site.job(true).await;
    let path = format!("/jobs/{job}");
    let asks = [("ada", 200), ("otto", 200), ("vera", 403), ("sam", 404), ("mia", 403)];
    for (who, status) in asks {
        let answer = site.ask(who, "PATCH", &path, &json!({ "name": format!("by-{who}") })).await;
        assert_eq!(answer.status, status, "{who}: {}", answer.body);
    }
    let seen = value(&site.ask("ada", "GET", &path, &Value::Null).await);
    assert_eq!((&seen["id"], &seen["name"], &seen["owner"]), (&json!(job), &json!("by-otto"), &json!("ada")));
    let hidden = site.ask("sam", "GET", &path, &Value::Null).await;
    assert_eq!(hidden.status, 404, "{}", hidden.body);
    for field in ["owner", "id"] {
        let answer = site.ask("ada", "PATCH", &path, &json!({ field: "sam" })).await;
        assert_eq!(answer.status, 422, "{field}: {}", answer.body);
    }
}
