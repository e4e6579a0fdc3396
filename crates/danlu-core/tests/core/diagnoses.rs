//! Last words, and what they mean.

use danlu_core::diagnosis::{diagnose, reference};
use danlu_core::job::Exit;
use proptest::prelude::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/diagnosis.md");

fn told(text: &str, exit: Exit) -> String {
    match diagnose(text.lines(), Some(exit)) {
        Some(found) => format!("{} ({:?}): {}", found.entry.name, found.entry.kind, found.line),
        None => "nothing known".to_owned(),
    }
}

#[test]
fn well_known_last_words() {
    let words = [
        "[ERROR] HCCL(123,python):2024-01-01 EI0006: Getting socket times out. Reason: 1. a peer is gone",
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 29.5 GiB total capacity)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79 GiB",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "ModuleNotFoundError: No module named 'mindspore'",
        "/bin/sh: 1: ./train: Exec format error",
        "OSError: [Errno 28] No space left on device: '/ckpt/model.pt'",
        "step 12: Loss is NaN, stopping training",
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1970, ncclRemoteError: A call failed possibly due to a network error",
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE)",
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:45610",
        "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/2 clients joined.",
        "ERR00100 PTA call acl api failed: EJ0001: Failed to initialize the HCCP process",
        "all is well",
    ];
    let shown: Vec<String> = words.iter().map(|line| told(line, Exit::Code(1))).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn causes_come_before_symptoms_and_words_before_exit_codes() {
    let both = "ModuleNotFoundError: No module named 'x'\nRuntimeError: Connection reset by peer\n";
    assert!(told(both, Exit::Signal(11)).starts_with("missing-module"));
    assert!(told("Connection reset by peer", Exit::Signal(11)).starts_with("connection-reset"));
    assert!(told("", Exit::Signal(11)).starts_with("crash "));
    assert!(told("", Exit::Code(127)).starts_with("not-found"));
    assert_eq!(told("", Exit::Code(3)), "nothing known");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the page lies in the tree; the crate itself still reads nothing"
)]
fn the_page_for_readers_is_fresh() {
    let page = reference();
    if std::env::var_os("DANLU_BLESS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let present = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        present == page,
        "docs/reference/diagnosis.md is stale: run `DANLU_BLESS=1 cargo test -p danlu-core`"
    );
}

proptest! {
    #[test]
    fn nothing_that_a_rank_prints_hurts(lines in prop::collection::vec(".{0,40}", 0..4), code in any::<i32>()) {
        let _ = diagnose(lines.iter().map(String::as_str), Some(Exit::Code(code)));
    }
}
