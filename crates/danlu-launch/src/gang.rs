//! How the workers of an attempt find each other: each says that it is here and waits for the others.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use danlu_core::job::{Failure, FailureCause};
use danlu_core::launch::{LaunchFile, Present};
use tokio::time::sleep;

use crate::error::{Halt, StartError};
use crate::worker::Orders;

const FIRST_LOOK: Duration = Duration::from_millis(2);
const SLOWEST_LOOK: Duration = Duration::from_millis(50);

/// A port that is ours until it is let go, right before the ranks start.
///
/// One race remains: between then and the bind of rank 0, another process may be given the same port by the kernel. The
/// time is some milliseconds and a port just let go is the last to be given again, so a framework's own retry covers it;
/// only a rank that inherits the socket could close the gap, and no framework takes one.
#[derive(Debug)]
pub(crate) struct Reserved {
    _listener: TcpListener,
    pub(crate) port: u16,
}

impl Reserved {
    fn new(address: &str) -> io::Result<Self> {
        let any = match address.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        // The standard library sets SO_REUSEADDR, so that nothing lingers when this is closed.
        let listener = TcpListener::bind((any, 0))?;
        let port = listener.local_addr()?.port();
        Ok(Reserved { _listener: listener, port })
    }
}

/// Where rank 0 will listen, once all workers are there.
pub(crate) async fn assemble(
    launch: &LaunchFile,
    orders: &mut Orders<'_>,
) -> Result<(Reserved, Present), Halt> {
    let reserved = Reserved::new(&launch.address).map_err(StartError::Port)?;
    let own = Present { address: launch.address.clone(), port: reserved.port };
    if launch.gang.workers <= 1 {
        return Ok((reserved, own));
    }
    let folder = &launch.folders.gang;
    publish(folder, launch.worker.worker.0, &own).map_err(StartError::Present)?;

    let deadline = Instant::now() + launch.gang.timeout.to_duration();
    let mut missing: Vec<u32> = (0..launch.gang.workers).collect();
    let mut wait = FIRST_LOOK;
    loop {
        missing.retain(|index| read(folder, *index).is_none());
        if missing.is_empty() {
            break;
        }
        if Instant::now() >= deadline {
            return Err(Halt::Failed(gave_up(launch, &missing)));
        }
        tokio::select! {
            () = sleep(wait) => wait = (wait * 2).min(SLOWEST_LOOK),
            () = orders.stop() => return Err(Halt::Stopped),
        }
    }
    let first = read(folder, 0).unwrap_or(own);
    Ok((reserved, first))
}

fn publish(folder: &Path, index: u32, present: &Present) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let fresh = folder.join(format!(".worker-{index}.new"));
    fs::write(&fresh, serde_json::to_vec(present).map_err(io::Error::other)?)?;
    fs::rename(fresh, folder.join(format!("worker-{index}.json")))
}

fn read(folder: &Path, index: u32) -> Option<Present> {
    let text = fs::read(folder.join(format!("worker-{index}.json"))).ok()?;
    serde_json::from_slice(&text).ok()
}

fn gave_up(launch: &LaunchFile, missing: &[u32]) -> Failure {
    let names: Vec<String> = missing.iter().map(u32::to_string).collect();
    let (noun, verb) = if names.len() == 1 { ("worker", "has") } else { ("workers", "have") };
    let detail = format!(
        "{noun} {} of {} {verb} not appeared within {}",
        names.join(", "),
        launch.gang.workers,
        launch.gang.timeout
    );
    Failure { cause: FailureCause::GangTimeout, rank: None, exit: None, detail }
}
