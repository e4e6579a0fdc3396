//! Last words, and what they mean.

use danlu_core::diagnosis::{diagnose, reference};
use danlu_core::job::ProcessExit;
use danlu_types::api::LogStream;
use proptest::prelude::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/diagnosis.md");

fn told(text: &str, exit: ProcessExit) -> String {
    on(LogStream::Stderr, text, exit)
}

fn on(stream: LogStream, text: &str, exit: ProcessExit) -> String {
    match diagnose(text.lines().map(|line| (stream, line)), Some(exit), true) {
        Some(found) if !found.is_certain => format!("perhaps {}: {}", found.entry.name, found.line),
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
    let shown: Vec<String> = words.iter().map(|line| told(line, ProcessExit::Code(1))).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn causes_come_before_symptoms_and_words_before_exit_codes() {
    let both = "ModuleNotFoundError: No module named 'x'\nRuntimeError: Connection reset by peer\n";
    assert!(told(both, ProcessExit::Signal(11)).starts_with("missing-module"));
    assert!(told("Connection reset by peer", ProcessExit::Signal(11)).starts_with("connection-reset"));
    assert!(told("", ProcessExit::Signal(11)).starts_with("crash "));
    assert!(told("", ProcessExit::Code(127)).starts_with("not-found"));
    assert_eq!(told("", ProcessExit::Code(3)), "nothing known");
}

#[test]
fn issue_15_a_tip_or_a_source_line_is_no_diagnosis() {
    let one = ProcessExit::Code(1);
    let tip = "tip: if you see 'CUDA out of memory', lower --batch\nOSError: [Errno 116] Stale file handle\n";
    assert!(on(LogStream::Stdout, tip, one).starts_with("perhaps cuda-memory"));
    let plain = "note: CUDA out of memory is possible with large batches\n";
    assert!(on(LogStream::Stdout, plain, one).starts_with("perhaps cuda-memory"));
    // On stderr, and without quotes or a traceback.
    for advice in [
        "tip: on CUDA out of memory lower --batch\n",
        "[WARNING] CUDA out of memory is possible with large batches\n",
        "WARNING:root:CUDA out of memory, trying a smaller batch\n",
        "on CUDA out of memory lower the batch size\nreading /data\nreading /more\nStale file handle\n",
    ] {
        assert!(told(advice, one).starts_with("perhaps cuda-memory"), "{advice}{}", told(advice, one));
    }
    let source = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    \
        raise RuntimeError(\"CUDA out of memory\") if full else OSError(116)\nOSError: [Errno 116] Stale file handle\n";
    assert_eq!(told(source, one), "nothing known");
    // An error that was dealt with long before the end.
    let early = format!("RuntimeError: CUDA out of memory. Tried\n{}", "step\n".repeat(80));
    assert_eq!(told(&early, one), "nothing known");
    let caught = "RuntimeError: CUDA out of memory, trying a smaller batch\nTraceback (most recent call last):\n  \
        File \"a.py\", line 1, in f\nOSError: [Errno 116] Stale file handle\n";
    assert!(told(caught, one).starts_with("perhaps cuda-memory"));
}

#[test]
fn issue_15_what_ended_the_rank_is_certain() {
    let one = ProcessExit::Code(1);
    let traceback = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x.cuda()\n\
        [rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n";
    assert!(told(traceback, one).starts_with("cuda-memory (Program)"));
    let chained = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nModuleNotFoundError: No module named 'x'\n\n\
        During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  \
        File \"a.py\", line 2, in g\nValueError: no backend\n";
    assert!(told(chained, one).starts_with("missing-module (Program)"));
    // The last words of a program that is not written in Python.
    let words = "step 7\nCUDA out of memory\ncore dumped\n";
    assert!(told(words, one).starts_with("cuda-memory (Program)"), "{}", told(words, one));
    let complaint = "[ERROR] HCCL(1,python): EI0006: Getting socket times out.\n";
    assert!(on(LogStream::Stdout, complaint, one).contains("(Symptom)"));
}

#[test]
fn issue_15_no_device_failed_a_job_that_has_none() {
    let line = [(LogStream::Stderr, "RuntimeError: CUDA error: uncorrectable ECC error encountered")];
    assert_eq!(diagnose(line.into_iter(), Some(ProcessExit::Code(1)), false), None);
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
        let _ = diagnose(lines.iter().map(|line| (LogStream::Stdout, line.as_str())), Some(ProcessExit::Code(code)), true);
    }
}
