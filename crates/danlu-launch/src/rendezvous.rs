//! How the workers of an attempt find each other: each says that it is here and waits for the others.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use danlu_core::job::{FailureCause, WorkerFailure};
use danlu_core::launch::{LaunchFile, Present};
use danlu_types::DeviceKind;
use tokio::time::sleep;

use crate::error::{StartAborted, StartError};
use crate::port::Port;
use crate::worker::Orders;

const FIRST_LOOK: Duration = Duration::from_millis(2);
const SLOWEST_LOOK: Duration = Duration::from_millis(50);

/// All workers of this one's world, once they are there, and the port that is held for rank 0 if that is ours.
pub(crate) async fn assemble(
    launch: &LaunchFile,
    orders: &mut Orders<'_>,
) -> Result<(Option<Port>, Vec<Present>), StartAborted> {
    let first = launch.world_worker() == 0;
    // The launcher's number tells attempts of one job apart.
    let seed = launch.worker.job.0.wrapping_mul(61) ^ u64::from(std::process::id());
    let port = first.then(|| Port::reserve(&launch.address, seed)).transpose().map_err(StartError::Port)?;
    let ascend = launch.devices.iter().filter(|device| device.kind == DeviceKind::Ascend);
    let own = Present {
        address: launch.address.clone(),
        port: port.as_ref().map_or(0, |port| port.number),
        node: Some(launch.node.clone()),
        super_pod: launch.topology.super_pod,
        devices: ascend.cloned().collect(),
    };
    if launch.world_workers() <= 1 {
        return Ok((port, vec![own]));
    }
    let folder = &launch.folders.gang;
    publish(folder, launch.worker.worker.0, &own).map_err(StartError::Present)?;

    let deadline = Instant::now() + launch.gang.timeout.to_duration();
    let mut present: BTreeMap<u32, Present> = BTreeMap::new();
    let mut wait = FIRST_LOOK;
    loop {
        let workers = 0..launch.gang.workers;
        let missing: Vec<u32> = workers.filter(|index| !present.contains_key(index)).collect();
        present.extend(missing.iter().filter_map(|index| Some((*index, read(folder, *index)?))));
        if present.len() == launch.gang.workers as usize {
            // Without the mark nothing is wrong but that our files stay.
            let _ = fs::write(mark(folder, launch.worker.worker.0), "");
            return Ok((port, present.into_values().collect()));
        }
        if Instant::now() >= deadline {
            let missing: Vec<u32> =
                missing.into_iter().filter(|index| !present.contains_key(index)).collect();
            return Err(StartAborted::Failed(gave_up(launch, &missing)));
        }
        tokio::select! {
            () = sleep(wait) => wait = (wait * 2).min(SLOWEST_LOOK),
            () = orders.stop() => return Err(StartAborted::Stopped),
        }
    }
}

fn publish(folder: &Path, index: u32, present: &Present) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let fresh = folder.join(format!(".worker-{index}.new"));
    fs::write(&fresh, serde_json::to_vec(present).map_err(io::Error::other)?)?;
    fs::rename(fresh, word(folder, index))
}

/// Leaves a folder in which other gangs may meet later. What worker `own` said of itself stays as long as another may not have
/// read it: a short program can be over before the others have looked. Then the last to end clears up for all.
pub(crate) fn leave(folder: &Path, own: u32, workers: u32) {
    let remove = |index: u32| {
        let _ = fs::remove_file(word(folder, index));
        let _ = fs::remove_file(mark(folder, index));
    };
    if (0..workers).all(|index| mark(folder, index).exists()) {
        (0..workers).for_each(remove);
    } else if !mark(folder, own).exists() {
        remove(own);
    }
}

/// What a worker says of itself.
pub(crate) fn word(folder: &Path, index: u32) -> PathBuf {
    folder.join(format!("worker-{index}.json"))
}

/// That a worker has read all the others.
fn mark(folder: &Path, index: u32) -> PathBuf {
    folder.join(format!("worker-{index}.met"))
}

fn read(folder: &Path, index: u32) -> Option<Present> {
    let text = fs::read(word(folder, index)).ok()?;
    serde_json::from_slice(&text).ok()
}

fn gave_up(launch: &LaunchFile, missing: &[u32]) -> WorkerFailure {
    let names: Vec<String> = missing.iter().map(u32::to_string).collect();
    let (noun, verb) = if names.len() == 1 { ("worker", "has") } else { ("workers", "have") };
    let detail = format!(
        "{noun} {} of {} {verb} not appeared within {}",
        names.join(", "),
        launch.gang.workers,
        launch.gang.timeout
    );
    WorkerFailure { cause: FailureCause::GangTimeout, rank: None, exit: None, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_until_all_have_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let left = || fs::read_dir(folder.path()).unwrap().count();
        for index in 0..2 {
            fs::write(word(folder.path(), index), "{}").unwrap();
        }
        fs::write(mark(folder.path(), 0), "").unwrap();
        leave(folder.path(), 0, 2);
        assert_eq!(left(), 3, "worker 1 has not met worker 0 yet");
        fs::write(mark(folder.path(), 1), "").unwrap();
        leave(folder.path(), 1, 2);
        assert_eq!(left(), 0);
    }

    #[test]
    fn one_who_gave_up_takes_its_word_back() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(word(folder.path(), 0), "{}").unwrap();
        leave(folder.path(), 0, 2);
        assert!(!word(folder.path(), 0).exists());
    }
}
