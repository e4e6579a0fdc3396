//! Nodes that get other devices while the cluster is used, as when an administrator takes cards out.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::configuration::gres_conf;
use super::{SlurmRig, slurmd, wait_until};
use crate::alive;

impl SlurmRig {
    /// Gives these nodes this number of GPUs, and all others what they had at first: writes Slurm's configuration and starts its daemons
    /// again, which is what Slurm's manual asks for. Jobs stay; what `scontrol update` said of nodes and partitions does not.
    pub fn set_gpus(&self, nodes: &[&str], count: u32) {
        let gpus_of = |node: &str| if nodes.contains(&node) { count } else { Self::GPUS };
        let configuration = self.configuration();
        let text = std::fs::read_to_string(&configuration).expect("the cluster has a configuration");
        let lines = text.lines().map(|line| match line.split_once(" Gres=gpu:a100:") {
            Some((node, rest)) => {
                let name = node.trim_start_matches("NodeName=").split(' ').next().unwrap_or_default();
                let others = rest.split_once(',').map(|(_, others)| others).unwrap_or_default();
                format!("{node} Gres=gpu:a100:{},{others}\n", gpus_of(name))
            }
            None => format!("{line}\n"),
        });
        std::fs::write(&configuration, lines.collect::<String>()).expect("the folder is ours");
        std::fs::write(self.folder.join("gres.conf"), gres_conf(&self.folder, gpus_of))
            .expect("the folder is ours");
        for name in std::iter::once("slurmctld".to_owned()).chain(Self::nodes().map(|node| slurmd(&node))) {
            let pid = self.daemon(&name).expect("the daemon runs");
            kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it is ours to end");
            wait_until("the daemon has ended", || !alive(pid));
            // Its number may be another's before the cluster ends.
            let _ = std::fs::remove_file(self.folder.join(format!("run/{name}.pid")));
        }
        self.spawn("/usr/sbin/slurmctld", &["-D", "-f"]);
        for node in Self::nodes() {
            self.spawn("/usr/sbin/slurmd", &["-D", "-N", &node, "-f"]);
            wait_until("the node's daemon is back", || self.daemon(&slurmd(&node)).is_some());
        }
        self.wait_for_nodes();
    }
}
