//! Files that jobs leave, looked at through the API by a server that must not be led astray by them.

use std::process::Command;

use danlu_client::ClientError;
use danlu_testkit::{TestServer, spec};
use danlu_types::ProblemCode;
use danlu_types::api::{FileArea, FileKind, FileQuery};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn query(path: &str) -> FileQuery {
    FileQuery { path: path.to_owned(), ..FileQuery::default() }
}

#[tokio::test]
async fn what_a_job_wrote_can_be_listed_and_taken_along_and_nothing_else() {
    let server = TestServer::start(DANLU, &[]).await;
    let job = server
        .run(&spec(
            "cd $DANLU_OUTPUT_DIR && mkdir -p deep/er && printf 'a model' > deep/er/model.bin && ln -s /etc etc &&
             ln -s /etc/passwd deep/passwd && ln -s ../../.. deep/up && mkfifo pipe && echo here > $PWD/note",
        ))
        .await;
    let entries = server.client().files_list(job.id, &query("")).await.expect("a folder").items;
    let seen: Vec<(&str, FileKind, u64)> =
        entries.iter().map(|entry| (entry.name.as_str(), entry.kind, entry.size)).collect();
    let expected = [
        ("deep", FileKind::Folder, 0),
        ("note", FileKind::File, 5),
        ("etc", FileKind::Other, 0),
        ("pipe", FileKind::Other, 0),
    ];
    assert_eq!(seen, expected);
    let work = FileQuery { area: FileArea::Work, ..query("") };
    assert!(server.client().files_list(job.id, &work).await.is_ok());

    for (path, code) in [
        ("etc", ProblemCode::NotFound),
        ("etc/passwd", ProblemCode::NotFound),
        ("deep/passwd", ProblemCode::NotFound),
        ("deep/up", ProblemCode::NotFound),
        ("pipe", ProblemCode::NotFound),
        ("deep", ProblemCode::NotFound),
        ("nothing", ProblemCode::NotFound),
        ("../checkpoint", ProblemCode::BadRequest),
        ("deep/../../../../../etc/passwd", ProblemCode::BadRequest),
        ("/etc/passwd", ProblemCode::BadRequest),
        ("a\0b", ProblemCode::BadRequest),
    ] {
        match server.client().file_read(job.id, &query(path), |_| Ok::<_, ClientError>(())).await {
            Err(ClientError::Problem(problem)) => {
                assert_eq!(problem.code, code, "{path}: {}", problem.detail);
            }
            other => panic!("{path}: {other:?}"),
        }
    }
    let output = Command::new(DANLU)
        .arg("--data")
        .arg(server.data())
        .args(["files", &job.id.to_string(), "deep/er/model.bin", "--get"])
        .output()
        .expect("danlu runs");
    assert_eq!(output.stdout, b"a model", "{}", String::from_utf8_lossy(&output.stderr));
}
