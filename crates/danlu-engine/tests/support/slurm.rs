//! Sites for tests on a Slurm cluster.

#![allow(dead_code, reason = "each test program uses its part")]
#![expect(clippy::unwrap_used, reason = "part of tests, where a panic is the message")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use danlu_engine::Engine;
use danlu_engine::conformance::Site;
use danlu_engine::slurm::{SlurmEngine, SlurmOptions};
use danlu_slurm::{PlacementMode, SlurmSettings};
use danlu_testkit::SlurmRig;
pub(crate) use danlu_testkit::slurm_programs as programs;
use danlu_types::{NodeName, Span, WorkerId};

use crate::support::example;

const IDENTITY: &str = "the site's own";

pub(crate) fn shared_site() -> Option<Site> {
    Some(site_of(SlurmRig::shared()?, None))
}

/// The same cluster, where Slurm chooses the nodes.
pub(crate) fn delegating_site() -> Option<Site> {
    Some(site_with(SlurmRig::shared()?, None, PlacementMode::Engine, false))
}

/// On a cluster of its own, whose nodes can be lost.
pub(crate) fn breakable_site() -> Option<Site> {
    let rig = SlurmRig::start()?;
    let site = site_of(&rig, None);
    let nodes = SlurmRig::nodes().map(NodeName).collect();
    Some(site.with_nodes_to_lose(nodes, move |node| {
        rig.lose_node(&node.0);
        // Slurm would find out by itself, minutes later.
        rig.ask("scontrol", &["update", &format!("NodeName={node}"), "State=DOWN", "Reason=fire"]);
    }))
}

/// A data folder of its own; `programs` stand in for Slurm's.
pub(crate) fn site_of(rig: &SlurmRig, programs: Option<PathBuf>) -> Site {
    site_with(rig, programs, PlacementMode::Danlu, false)
}

pub(crate) fn site_with(
    rig: &SlurmRig,
    programs: Option<PathBuf>,
    placement: PlacementMode,
    many_users: bool,
) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("it's shared".repeat(10));
    fs::create_dir(&data).unwrap();
    let settings = SlurmSettings {
        configuration: Some(rig.configuration()),
        poll: Span { milliseconds: 100 },
        programs,
        placement,
        ..SlurmSettings::default()
    };
    let inside = data.clone();
    let site = Site::new(data, move || {
        let _kept_until_the_site_goes = &folder;
        let program = example("engine_launcher").into_os_string();
        let options = SlurmOptions {
            data: inside.clone(),
            identity: Some(IDENTITY.to_owned()),
            program,
            settings: settings.clone(),
            many_users,
            sidecars: None,
        };
        Arc::new(SlurmEngine::new(options).unwrap()) as Arc<dyn Engine>
    });
    site.on_cluster(SlurmRig::nodes().map(NodeName).collect())
}

/// The numbers of all jobs of Slurm's that were ever submitted for a job, as far as Slurm remembers.
pub(crate) fn jobs_of(rig: &SlurmRig, worker: WorkerId, site: &Site) -> Vec<String> {
    let order = fs::read_to_string(allocation(site, worker).join("order.json")).unwrap();
    let order: serde_json::Value = serde_json::from_str(&order).unwrap();
    let name = format!("--name={}", order["name"].as_str().unwrap());
    let listed = rig.ask("squeue", &["--noheader", "--states=all", "--format=%i", &name]);
    listed.lines().map(str::to_owned).collect()
}

pub(crate) fn allocation(site: &Site, worker: WorkerId) -> PathBuf {
    site.layout().job_folder(worker.job).join(format!("{}.slurm.0", worker.attempt))
}
