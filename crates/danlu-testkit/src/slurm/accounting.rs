//! A cluster that keeps accounts: what its daemons read of that.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::configuration::free_ports;
use super::version::daemon;

pub(super) fn is_installed() -> bool {
    let has_tools =
        Path::new("/usr/bin/mariadb-install-db").exists() && Path::new("/usr/bin/my_print_defaults").exists();
    has_tools && ["slurmdbd", "mariadbd"].into_iter().all(|name| daemon(name).is_some())
}

/// Writes what the database's daemon reads, and says what Slurm's other daemons read of it.
pub(super) fn configure(folder: &Path) -> String {
    let rig = folder.display();
    let port = free_ports(1)[0];
    let text = format!(
        "AuthType=auth/munge\n\
         AuthInfo=socket={rig}/run/munge.socket\n\
         DbdHost=localhost\n\
         DbdAddr=127.0.0.1\n\
         DbdPort={port}\n\
         CommunicationParameters=NoInAddrAny\n\
         SlurmUser=root\n\
         PidFile={rig}/run/slurmdbd.pid\n\
         LogFile={rig}/log/slurmdbd.log\n\
         DebugLevel=error\n\
         StorageType=accounting_storage/mysql\n\
         StorageHost=localhost\n\
         StorageUser=root\n\
         StorageLoc=slurm\n"
    );
    let path = folder.join("slurmdbd.conf");
    std::fs::write(&path, text).expect("the folder is ours");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("the file is ours");
    format!(
        "AccountingStorageType=accounting_storage/slurmdbd\n\
         AccountingStorageHost=127.0.0.1\n\
         AccountingStoragePort={port}\n\
         # Where its clients find munge.
         AccountingStoragePass={rig}/run/munge.socket\n\
         AccountingStorageEnforce=associations,limits,qos\n\
         AccountingStorageTRES=gres/gpu,gres/npu\n"
    )
}
