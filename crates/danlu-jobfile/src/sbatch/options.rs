//! Every option that `sbatch` knows, and what becomes of it here.

use crate::near::nearest;

#[derive(Debug)]
pub(super) struct SbatchOption {
    pub(super) long: &'static str,
    pub(super) letter: Option<char>,
    pub(super) argument: Argument,
    pub(super) meaning: Meaning,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    None,
    Optional,
    Needed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Field(Field),
    /// Passed over; this is said.
    Instead(&'static str),
    /// A job that runs without it is not what was meant: what to do.
    Refused(&'static str),
    /// How `sbatch` itself behaves, which is over once a job is submitted.
    OfNoConcern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Array,
    Chdir,
    Constraint,
    CpusPerGpu,
    CpusPerTask,
    Export,
    Gpus,
    GpusPerNode,
    GpusPerTask,
    Gres,
    JobName,
    Mem,
    MemPerCpu,
    MemPerGpu,
    Nodes,
    Ntasks,
    NtasksPerGpu,
    NtasksPerNode,
    Requeue,
    Signal,
    Time,
    Wrap,
}

/// The option of this name, or the only one that begins so: `--ntasks-per-n` is taken by Slurm, too.
pub(super) fn by_name(name: &str) -> Option<&'static SbatchOption> {
    if let Some(known) = KNOWN.iter().find(|known| known.long == name) {
        return Some(known);
    }
    let mut begin = KNOWN.iter().filter(|known| !name.is_empty() && known.long.starts_with(name));
    begin.next().filter(|_| begin.next().is_none())
}

pub(super) fn by_letter(letter: char) -> Option<&'static SbatchOption> {
    KNOWN.iter().find(|known| known.letter == Some(letter))
}

pub(super) fn nearest_name(name: &str) -> Option<String> {
    let words: Vec<String> = KNOWN.iter().map(|known| known.long.replace('-', "_")).collect();
    nearest(name, words.iter().map(String::as_str)).map(|near| near.replace('_', "-"))
}

const LOGS: &str = "what the job prints is kept, and shown by `danlu logs`";
const NODES: &str = "any node may be taken that has what the job asks for; labels choose among them (`--set nodes.labels.NAME=VALUE`)";
const WITHIN: &str = "Danlu binds processes to the cores next to their devices by itself";
const MAIL: &str = "no mail is sent";
const SITE: &str = "it says something about a cluster of Slurm's, and Danlu has nothing like it";
const SOON: &str = "the job starts as soon as there is room for it";
const ORDER: &str = "`--priority 1` to `9` says who comes first";

const fn field(long: &'static str, letter: Option<char>, field: Field) -> SbatchOption {
    SbatchOption { long, letter, argument: Argument::Needed, meaning: Meaning::Field(field) }
}

const fn instead(
    long: &'static str,
    letter: Option<char>,
    argument: Argument,
    text: &'static str,
) -> SbatchOption {
    SbatchOption { long, letter, argument, meaning: Meaning::Instead(text) }
}

const fn refused(
    long: &'static str,
    letter: Option<char>,
    argument: Argument,
    hint: &'static str,
) -> SbatchOption {
    SbatchOption { long, letter, argument, meaning: Meaning::Refused(hint) }
}

const fn of_no_concern(long: &'static str, letter: Option<char>, argument: Argument) -> SbatchOption {
    SbatchOption { long, letter, argument, meaning: Meaning::OfNoConcern }
}

use Argument::{Needed, None as Bare, Optional};

static KNOWN: &[SbatchOption] = &[
    field("array", Some('a'), Field::Array),
    field("chdir", Some('D'), Field::Chdir),
    field("constraint", Some('C'), Field::Constraint),
    field("cpus-per-gpu", None, Field::CpusPerGpu),
    field("cpus-per-task", Some('c'), Field::CpusPerTask),
    field("export", None, Field::Export),
    field("gpus", Some('G'), Field::Gpus),
    field("gpus-per-node", None, Field::GpusPerNode),
    field("gpus-per-task", None, Field::GpusPerTask),
    field("gres", None, Field::Gres),
    field("job-name", Some('J'), Field::JobName),
    field("mem", None, Field::Mem),
    field("mem-per-cpu", None, Field::MemPerCpu),
    field("mem-per-gpu", None, Field::MemPerGpu),
    field("nodes", Some('N'), Field::Nodes),
    field("ntasks", Some('n'), Field::Ntasks),
    field("ntasks-per-gpu", None, Field::NtasksPerGpu),
    field("ntasks-per-node", None, Field::NtasksPerNode),
    // The same, undocumented, and written all the same.
    field("tasks-per-node", None, Field::NtasksPerNode),
    field("signal", None, Field::Signal),
    field("time", Some('t'), Field::Time),
    field("wrap", None, Field::Wrap),
    SbatchOption { long: "requeue", letter: None, argument: Bare, meaning: Meaning::Field(Field::Requeue) },
    refused(
        "dependency",
        Some('d'),
        Needed,
        "take the line out, and submit the job when the others have ended",
    ),
    refused("hold", Some('H'), Bare, "take the line out, and submit the job when it may start"),
    refused(
        "test-only",
        None,
        Bare,
        "take the line out; `danlu submit --dry-run` says when a job would start",
    ),
    refused("container", None, Needed, "take the line out; jobs run with the node's own programs here"),
    refused("uid", None, Needed, "remove the line; jobs belong to the account that submits them"),
    instead("account", Some('A'), Needed, "jobs count for workspaces: `--workspace NAME`"),
    instead("begin", Some('b'), Needed, SOON),
    instead("comment", None, Needed, "`--label NAME=VALUE` marks jobs"),
    instead(
        "deadline",
        None,
        Needed,
        "`--max-time` ends jobs that run too long; none is removed for waiting",
    ),
    instead("error", Some('e'), Needed, LOGS),
    instead("output", Some('o'), Needed, LOGS),
    instead("open-mode", None, Needed, LOGS),
    instead("input", Some('i'), Needed, "the script reads nothing from standard input"),
    instead("exclude", Some('x'), Needed, NODES),
    instead("nodelist", Some('w'), Needed, NODES),
    instead("nodefile", Some('F'), Needed, NODES),
    instead("partition", Some('p'), Needed, NODES),
    instead("clusters", Some('M'), Needed, NODES),
    instead("cluster-constraint", None, Needed, NODES),
    instead("prefer", None, Needed, NODES),
    instead("batch", None, Needed, NODES),
    instead("contiguous", None, Bare, NODES),
    instead("spread-job", None, Bare, NODES),
    instead("spread-segments", None, Bare, NODES),
    instead("use-min-nodes", None, Bare, NODES),
    instead(
        "switches",
        None,
        Needed,
        "workers are kept in one rack where they can be; `--set nodes.same_rack=true` insists",
    ),
    instead("segment", None, Needed, NODES),
    instead(
        "exclusive",
        None,
        Optional,
        "others may use what the job leaves of its nodes; asking for all devices of a node keeps them away",
    ),
    instead("oversubscribe", Some('s'), Bare, "the job gets what it asks for, and shares none of it"),
    instead("overcommit", Some('O'), Bare, "the job gets what it asks for"),
    instead("mail-type", None, Needed, MAIL),
    instead("mail-user", None, Needed, MAIL),
    instead("qos", Some('q'), Needed, ORDER),
    instead("nice", None, Optional, ORDER),
    instead("priority", None, Needed, ORDER),
    instead("licenses", Some('L'), Needed, "licences are not counted: take care that there are enough"),
    instead("reservation", None, Needed, SITE),
    instead("time-min", None, Needed, "the job may run as long as `--time` says"),
    instead("tmp", None, Needed, "`$TMPDIR` is a folder of the run folder's disk, and not limited"),
    instead("mincpus", None, Needed, "`--cpus` asks for the cores of each worker"),
    instead("cpu-freq", None, Needed, SITE),
    instead("gpu-freq", None, Needed, SITE),
    instead("distribution", Some('m'), Needed, "tasks are numbered node by node"),
    instead("cores-per-socket", None, Needed, WITHIN),
    instead("sockets-per-node", None, Needed, WITHIN),
    instead("threads-per-core", None, Needed, WITHIN),
    instead("extra-node-info", Some('B'), Needed, WITHIN),
    instead("core-spec", Some('S'), Needed, WITHIN),
    instead("thread-spec", None, Needed, WITHIN),
    instead("hint", None, Needed, WITHIN),
    instead("cpu-bind", None, Needed, WITHIN),
    instead("mem-bind", None, Needed, WITHIN),
    instead("gpu-bind", None, Needed, WITHIN),
    instead("gres-flags", None, Needed, WITHIN),
    instead("tres-bind", None, Needed, WITHIN),
    instead("ntasks-per-core", None, Needed, WITHIN),
    instead("ntasks-per-socket", None, Needed, WITHIN),
    instead("gpus-per-socket", None, Needed, "`--gpus-per-node` asks for devices"),
    instead(
        "tres-per-task",
        None,
        Needed,
        "`--gpus-per-node` and `--cpus-per-task` ask for devices and cores",
    ),
    instead("acctg-freq", None, Needed, SITE),
    instead("bb", None, Needed, SITE),
    instead("bbf", None, Needed, SITE),
    instead("container-id", None, Needed, SITE),
    instead("container-type", None, Needed, SITE),
    instead("oom-kill-step", None, Optional, "a worker that uses up its memory ends the attempt"),
    instead("delay-boot", None, Needed, SITE),
    instead("reboot", None, Bare, SITE),
    instead("extra", None, Needed, SITE),
    instead("mcs-label", None, Needed, SITE),
    instead("network", None, Needed, SITE),
    instead("power", None, Needed, SITE),
    instead("profile", None, Needed, "what jobs use is sampled always: `danlu metrics`"),
    instead("resv-ports", None, Needed, SITE),
    instead("wckey", None, Needed, SITE),
    instead("gid", None, Needed, SITE),
    instead("export-file", None, Needed, "`--env NAME=VALUE` sets variables"),
    instead("get-user-env", None, Optional, "`--env NAME=VALUE` sets variables"),
    instead("propagate", None, Optional, "limits are those of the launcher"),
    instead("no-kill", Some('k'), Optional, "an attempt ends when one of its nodes is lost"),
    instead("kill-on-invalid-dep", None, Needed, SITE),
    instead("wait-all-nodes", None, Needed, "all workers start together, always"),
    instead("stepmgr", None, Bare, SITE),
    instead("wait", Some('W'), Bare, "`danlu run` waits for the job, `danlu submit` does not"),
    of_no_concern("no-requeue", None, Bare),
    of_no_concern("ignore-pbs", None, Bare),
    of_no_concern("parsable", None, Bare),
    of_no_concern("quiet", Some('Q'), Bare),
    of_no_concern("verbose", Some('v'), Bare),
    of_no_concern("help", Some('h'), Bare),
    of_no_concern("usage", None, Bare),
    of_no_concern("version", Some('V'), Bare),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_and_no_letter_stands_for_two() {
        let mut names: Vec<&str> = KNOWN.iter().map(|known| known.long).collect();
        names.sort_unstable();
        let mut letters: Vec<char> = KNOWN.iter().filter_map(|known| known.letter).collect();
        letters.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert!(letters.windows(2).all(|pair| pair[0] != pair[1]), "{letters:?}");
    }

    /// Of Slurm 22.05, as `sbatch --help` has them.
    const OF_22_05: &str = "
        bb bbf cluster-constraint comment container contiguous cores-per-socket cpu-freq cpus-per-gpu
        deadline delay-boot exclusive export export-file get-user-env gid gpu-bind gpu-freq gpus-per-node
        gpus-per-socket gpus-per-task gres gres-flags ignore-pbs mail-type mail-user mcs-label mem
        mem-per-cpu mem-per-gpu mincpus nice no-requeue ntasks-per-core ntasks-per-node ntasks-per-socket
        parsable power priority profile propagate reboot requeue reservation signal sockets-per-node
        spread-job switches thread-spec threads-per-core time-min tmp uid usage use-min-nodes wckey wrap
        -A/account -B/extra-node-info -C/constraint -D/chdir -F/nodefile -G/gpus -H/hold -J/job-name
        -L/licenses -M/clusters -N/nodes -O/overcommit -Q/quiet -S/core-spec -V/version -W/wait -a/array
        -b/begin -c/cpus-per-task -d/dependency -e/error -h/help -i/input -k/no-kill -m/distribution
        -n/ntasks -o/output -p/partition -q/qos -s/oversubscribe -t/time -v/verbose -w/nodelist -x/exclude";

    #[test]
    fn every_option_of_sbatch_is_known_by_its_name_and_letter() {
        for written in OF_22_05.split_whitespace() {
            let (letter, long) = match written.split_once('/') {
                Some((letter, long)) => (letter.chars().nth(1), long),
                None => (None, written),
            };
            let known = by_name(long).unwrap_or_else(|| panic!("`--{long}` is not in the table"));
            assert_eq!((known.long, known.letter), (long, letter));
        }
        assert_eq!(
            by_name("tasks-per-node").map(|known| known.meaning),
            Some(Meaning::Field(Field::NtasksPerNode))
        );
    }

    #[test]
    fn a_name_may_be_cut_short_where_only_one_begins_so() {
        assert_eq!(by_name("ntasks-per-n").map(|known| known.long), Some("ntasks-per-node"));
        assert_eq!(by_name("mail").map(|known| known.long), None);
        assert_eq!(by_name("mem").map(|known| known.long), Some("mem"));
        assert_eq!(nearest_name("ntask-per-node").as_deref(), Some("ntasks-per-node"));
    }
}
