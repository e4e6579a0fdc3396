//! How long a large house waits: `cargo bench -p danlu --bench people`.
//!
//! 1,000 accounts in 50 workspaces, each in two of them. Each line is a name, the median and a unit, separated by tabs,
//! as the client sees them: through HTTP, with the answer read.

#![expect(clippy::print_stdout, reason = "a benchmark's output is its figures")]

use std::time::Instant;

use danlu_client::{Client, ClientError};
use danlu_testkit::{TestServer, spec};
use danlu_types::account::{AccountName, Scope, WorkspaceRole};
use danlu_types::api::{JobQuery, NewAccount, NewRole, NewToken};
use danlu_types::{JobId, Workspace};

const ACCOUNTS: usize = 1000;
const WORKSPACES: usize = 50;
const ROUNDS: usize = 300;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return; // `cargo test` runs benchmarks too; figures are only taken on purpose.
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure()).expect("the server answers");
}

fn name(number: usize) -> AccountName {
    format!("person-{number}").parse().expect("a name")
}

async fn measure() -> Result<(), ClientError> {
    let server = TestServer::start(env!("CARGO_BIN_EXE_danlu"), &[]).await;
    let admin = server.client();
    for number in 0..WORKSPACES {
        admin.workspace_set(&format!("team-{number}"), &Workspace::default()).await?;
    }
    for number in 0..ACCOUNTS {
        let name = name(number);
        admin
            .account_create(&NewAccount {
                name: name.clone(),
                display_name: None,
                email: None,
                password: None,
            })
            .await?;
        for workspace in [number % WORKSPACES, (number * 7 + 1) % WORKSPACES] {
            let role = NewRole { role: WorkspaceRole::Member };
            admin.member_set(&format!("team-{workspace}"), &name, &role).await?;
        }
    }
    let person = person(admin, &server).await?;
    let mut hidden = spec("sleep 1000");
    "team-30".clone_into(&mut hidden.workspace);
    let hidden = server.submit(&hidden).await;
    let mut own = spec("sleep 1000");
    "team-0".clone_into(&mut own.workspace);
    let own = server.submit(&own).await;

    time("list of all accounts", async || admin.accounts_list().await.map(drop)).await?;
    time("members of a workspace", async || person.members_list("team-0").await.map(drop)).await?;
    time("who one is", async || person.whoami().await.map(drop)).await?;
    time("list of the jobs one may see", async || person.jobs_list(&JobQuery::default()).await.map(drop))
        .await?;
    time("a job one may see", async || person.job_fetch(own).await.map(drop)).await?;
    time("a job one may not see", async || refused(&person, hidden).await).await
}

async fn refused(person: &Client, job: JobId) -> Result<(), ClientError> {
    match person.job_fetch(job).await {
        Err(error) if error.is_not_found() => Ok(()),
        other => panic!("it should be hidden: {other:?}"),
    }
}

/// Signs somebody of the middle in, and gives them a token.
async fn person(admin: &Client, server: &TestServer) -> Result<Client, ClientError> {
    use danlu_types::api::{NewPassword, Proof, SignIn, WithProof};
    let name = name(0);
    let link = admin.password_link(&name, &WithProof::default()).await?.password_link;
    let password = "a long password".to_owned();
    let new = NewPassword { password: password.clone(), current: None, link, code: None, keep_tokens: false };
    admin.password_set(&name, &new).await?;
    let request =
        SignIn { name: Some(name.to_string()), password: Some(password.clone()), ..SignIn::default() };
    let session = Client::new(&server.client().address(), &admin.sign_in(&request).await?);
    let proof = Some(Proof { password: Some(password), code: None });
    let new = NewToken { name: "bench".to_owned(), scope: Scope::All, lasts: None, proof };
    let token = session.token_make(&new).await?;
    Ok(Client::new(&server.client().address(), &token.secret))
}

async fn time(what: &str, ask: impl AsyncFn() -> Result<(), ClientError>) -> Result<(), ClientError> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        ask().await?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("{what}\t{:.2}\tms", times[ROUNDS / 2]);
    Ok(())
}
