//! What is different in one of several runs of a trace.

use danlu_types::{HeadOfLine, Node, NodeName, Sharing, Workspace};

use crate::trace::Trace;

/// These rules with another head of line in every workspace.
#[must_use]
pub fn with_policy(mut sharing: Sharing, policy: HeadOfLine, trace: &Trace) -> Sharing {
    // A policy needs a workspace to stand in: without any, those that the jobs name.
    if sharing.workspaces.is_empty() {
        let names = trace.workspaces();
        sharing.workspaces = names.into_iter().map(|name| (name.to_owned(), Workspace::default())).collect();
    }
    for workspace in sharing.workspaces.values_mut() {
        workspace.head_of_line = policy;
    }
    sharing
}

/// More nodes. Names must differ, also from those of simulated nodes that the trace itself had.
#[must_use]
pub fn with_nodes(mut nodes: Vec<Node>, added: Vec<Node>) -> Vec<Node> {
    for mut node in added {
        let stem = node.name.0.clone();
        let mut number = 1;
        while nodes.iter().any(|other| other.name == node.name) {
            number += 1;
            node.name = NodeName(format!("{stem}-{number}"));
        }
        nodes.push(node);
    }
    nodes
}
