use serde_json::{Value, json};

use super::{ALLOWED, Violation, check, is_of};
use crate::metadata::Graph;

/// Made-up metadata: each line is `crate -> dependency [kind]`; ours are those called danlu*.
fn graph(edges: &[&str]) -> Graph {
    let mut names: Vec<&str> = edges.iter().flat_map(|edge| edge.split(" -> ")).map(first_word).collect();
    names.sort_unstable();
    names.dedup();
    let nodes: Vec<Value> =
        names.iter().map(|name| json!({"id": name, "deps": dependencies(name, edges)})).collect();
    let packages: Vec<Value> = names.iter().map(|name| json!({"id": name, "name": name})).collect();
    let members: Vec<&&str> = names.iter().filter(|name| name.starts_with("danlu")).collect();
    Graph::parse(&json!({"packages": packages, "workspace_members": members, "resolve": {"nodes": nodes}}))
        .expect("made-up metadata is well-formed")
}

fn dependencies(from: &str, edges: &[&str]) -> Vec<Value> {
    let targets =
        edges.iter().filter_map(|edge| edge.split_once(" -> ")).filter(|(source, _)| *source == from);
    targets
        .map(|(_, target)| {
            let kind = target.split_once(' ').map(|(_, kind)| kind);
            json!({"pkg": first_word(target), "dep_kinds": [{"kind": kind}]})
        })
        .collect()
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

fn messages(edges: &[&str]) -> Vec<String> {
    check(&graph(edges)).iter().map(Violation::to_string).collect()
}

#[test]
fn a_tree_that_keeps_the_rule_passes() {
    let kept = [
        "danlu-core -> danlu-types",
        "danlu-sched -> danlu-core",
        "danlu-store -> sqlx",
        "danlu-server -> danlu-store",
        "danlu-server -> axum",
        "danlu-core -> serde",
    ];
    assert_eq!(messages(&kept), Vec::<String>::new());
}

#[test]
fn an_upward_edge_is_named_with_what_is_allowed() {
    assert_eq!(
        messages(&["danlu-core -> danlu-sched"]),
        ["`danlu-core` -> `danlu-sched`: `danlu-core` may use only `danlu-types`, `danlu-ranktable`"]
    );
}

#[test]
fn the_migrator_stands_alone() {
    assert_eq!(
        messages(&["danlu-migrate -> danlu-types"]),
        ["`danlu-migrate` -> `danlu-types`: `danlu-migrate` stands alone and uses no other crate of ours"]
    );
}

#[test]
fn an_unknown_crate_must_be_added_to_the_table() {
    let found = messages(&["danlu-kitchen -> serde"]);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("`danlu-kitchen` is not in the table"), "{found:?}");
    assert!(found[0].contains("add it to `ALLOWED`"), "{found:?}");
}

#[test]
fn the_test_kit_is_for_tests() {
    assert_eq!(messages(&["danlu -> danlu-testkit dev"]), Vec::<String>::new());
    assert_eq!(
        messages(&["danlu -> danlu-testkit"]),
        ["`danlu` -> `danlu-testkit`: the test kit may only be a dev-dependency"]
    );
}

#[test]
fn impurity_is_found_through_strangers_and_the_chain_is_shown() {
    let found = messages(&["danlu-sched -> innocent", "innocent -> tokio-util"]);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("`danlu-sched` -> `innocent` -> `tokio-util`: pure crates"), "{found:?}");
}

#[test]
fn one_impurity_is_told_once() {
    let found = messages(&["danlu-sched -> danlu-core", "danlu-core -> tokio", "tokio -> tokio-macros"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("`danlu-core` -> `tokio`: "), "{found:?}");
}

#[test]
fn tests_of_pure_crates_may_roll_dice() {
    assert_eq!(
        messages(&["danlu-core -> proptest dev", "proptest -> rand"]),
        Vec::<String>::new(),
        "dev-dependencies are not part of the product"
    );
}

#[test]
fn libraries_stay_at_home() {
    assert_eq!(
        messages(&["danlu-server -> sqlx"]),
        ["`danlu-server` -> `sqlx`: that library is for `danlu-store` only"]
    );
    assert_eq!(
        messages(&["danlu-cli -> axum-core"]),
        ["`danlu-cli` -> `axum-core`: that library is for `danlu-server`, `danlu-gateway` only"]
    );
    assert_eq!(messages(&["danlu-server -> kube"]).len(), 1);
    assert_eq!(messages(&["danlu-cli -> ruff_python_parser"]).len(), 1);
    assert_eq!(messages(&["danlu-migrate -> ruff_python_parser", "danlu-engine -> kube"]).len(), 0);
}

#[test]
fn a_build_dependency_counts_as_the_product() {
    assert_eq!(messages(&["danlu-core -> danlu-sim build"]).len(), 1);
}

#[test]
fn the_table_has_no_cycle_because_every_crate_uses_earlier_ones() {
    for (position, (name, allowed)) in ALLOWED.iter().enumerate() {
        for used in *allowed {
            let at = ALLOWED.iter().position(|(known, _)| known == used);
            assert!(
                at.is_some_and(|at| at < position),
                "`{name}` may use `{used}`, which is not a lower layer"
            );
        }
    }
}

#[test]
fn families_end_at_a_word() {
    assert!(is_of("rand", "rand") && is_of("rand", "rand_core") && is_of("tokio", "tokio-util"));
    assert!(!is_of("rand", "randomize"));
}
