//! What the cluster's daemons read.

use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::time::Duration;

use super::SlurmRig;

/// The devices of each node; `gpus_of` says how many GPUs it has.
pub(super) fn gres_conf(folder: &Path, gpus_of: impl Fn(&str) -> u32) -> String {
    let dev = folder.join("dev");
    let dev = dev.display();
    let last_npu = SlurmRig::NPUS - 1;
    let mut text = String::new();
    for node in SlurmRig::nodes() {
        let last_gpu = gpus_of(&node) - 1;
        let _ = writeln!(text, "NodeName={node} Name=gpu Type=a100 File={dev}/gpu[0-{last_gpu}]");
        let _ = writeln!(text, "NodeName={node} Name=npu Type=910b File={dev}/npu[0-{last_npu}]");
    }
    text
}

/// Ports that nothing listens on, and that the kernel gives to nobody who asks for any port: it would be somebody's by the
/// time that the daemons are up, on a busy machine. Each is claimed against other clusters, and launchers, by the abstract name
/// that launchers use, for as long as this process lives: daemons come back to their ports.
pub(super) fn free_ports(count: usize) -> Vec<u16> {
    const PORTS: std::ops::Range<u16> = 12_000..32_000;
    let first = usize::try_from(RandomState::new().build_hasher().finish() % PORTS.len() as u64).unwrap_or(0);
    let free = PORTS.cycle().skip(first).take(PORTS.len()).filter(|port| {
        let name = SocketAddr::from_abstract_name(format!("danlu-port-{port}")).expect("a short name");
        let Ok(claim) = UnixListener::bind_addr(&name) else { return false };
        let is_free = TcpListener::bind(("127.0.0.1", *port)).is_ok();
        if is_free {
            std::mem::forget(claim);
        }
        is_free
    });
    let ports: Vec<u16> = free.take(count).collect();
    assert_eq!(ports.len(), count, "there are free ports");
    ports
}

pub(super) fn slurm_conf(folder: &Path, timeout: Duration) -> String {
    let host = nix::unistd::gethostname().expect("a machine has a name").to_string_lossy().into_owned();
    let host = host.split('.').next().unwrap_or_default();
    let (rig, missed) = (folder.display(), timeout.as_secs());
    let mut ports = free_ports(1 + SlurmRig::NODES as usize).into_iter();
    let controller = ports.next().unwrap_or_default();
    let mut text = format!(
        "ClusterName=danlu\n\
         SlurmctldHost={host}(127.0.0.1)\n\
         SlurmctldPort={controller}\n\
         # Loopback only.\n\
         CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
         SlurmUser=root\n\
         SlurmdUser=root\n\
         AuthType=auth/munge\n\
         AuthInfo=socket={rig}/run/munge.socket\n\
         CredType=cred/munge\n\
         SlurmctldPidFile={rig}/run/slurmctld.pid\n\
         SlurmdPidFile={rig}/run/slurmd-%n.pid\n\
         SlurmctldLogFile={rig}/log/slurmctld.log\n\
         SlurmdLogFile={rig}/log/slurmd-%n.log\n\
         StateSaveLocation={rig}/state\n\
         SlurmdSpoolDir={rig}/spool/%n\n\
         ReturnToService=2\n\
         MailProg=/bin/true\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         JobAcctGatherType=jobacct_gather/none\n\
         JobCompType=jobcomp/none\n\
         MpiDefault=none\n\
         SwitchType=switch/none\n\
         SelectType=select/cons_tres\n\
         SelectTypeParameters=CR_CPU_Memory\n\
         SchedulerType=sched/backfill\n\
         PreemptType=preempt/partition_prio\n\
         PreemptMode=REQUEUE\n\
         SchedulerParameters=default_queue_depth=2000,sched_min_interval=0,batch_sched_delay=0,sched_max_job_start=0,bf_continue,bf_interval=5\n\
         GresTypes=gpu,npu\n\
         # Nodes claim more than the machine has.\n\
         SlurmdParameters=config_overrides\n\
         MinJobAge=30\n\
         MessageTimeout=60\n\
         SlurmctldTimeout=300\n\
         SlurmdTimeout={missed}\n\
         InactiveLimit=0\n\
         KillWait=2\n\
         SlurmctldDebug=error\n\
         SlurmdDebug=error\n"
    );
    let (gpus, npus) = (SlurmRig::GPUS, SlurmRig::NPUS);
    for (node, port) in SlurmRig::nodes().zip(ports) {
        let _ = writeln!(
            text,
            "NodeName={node} NodeAddr=127.0.0.1 Port={port} CPUs=64 RealMemory=512000 Gres=gpu:a100:{gpus},npu:910b:{npus} State=UNKNOWN"
        );
    }
    let nodes = SlurmRig::NODES;
    let _ = writeln!(
        text,
        "PartitionName=main Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=100 PriorityTier=1"
    );
    let _ = writeln!(
        text,
        "PartitionName=urgent Nodes=n[1-{nodes}] MaxTime=INFINITE State=UP DefMemPerCPU=100 PriorityTier=10 PreemptMode=OFF"
    );
    text
}
