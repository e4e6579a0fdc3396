//! The options of `srun`, and what becomes of each in a job that comes from a batch script.
//!
//! One table for both sides: scripts are checked with it when they are submitted, and the `srun` of running jobs, which is a
//! shell program, reads its options by [`shell_options`]. So nothing can be known to one and not to the other.

use std::fmt::Write;

#[derive(Debug, Clone, Copy)]
pub struct SrunOption {
    pub long: &'static str,
    pub letter: Option<char>,
    pub argument: OptionArgument,
    pub effect: OptionEffect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionArgument {
    None,
    /// Only after `=`, or joined to the letter.
    Optional,
    Needed,
}

/// What an option does to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionEffect {
    /// As under Slurm.
    Honoured,
    /// Nothing, and no result depends on it; or Slurm, too, reads it for new jobs only and not for steps.
    Irrelevant,
    /// The step runs without it: what happens instead.
    Ignored(&'static str),
    /// A step without it is not what was meant: why not.
    Refused(&'static str),
}

/// The option of this name, or the only one that begins so.
pub fn option_by_name(name: &str) -> Option<&'static SrunOption> {
    if let Some(option) = OPTIONS.iter().find(|option| option.long == name) {
        return Some(option);
    }
    let mut begin = OPTIONS.iter().filter(|option| !name.is_empty() && option.long.starts_with(name));
    begin.next().filter(|_| begin.next().is_none())
}

pub fn option_by_letter(letter: char) -> Option<&'static SrunOption> {
    OPTIONS.iter().find(|option| option.letter == Some(letter))
}

/// The effect of an option with this value: some values ask for nothing.
pub fn effect(option: &SrunOption, value: Option<&str>) -> OptionEffect {
    let asks_for_nothing = match (option.long, value.unwrap_or_default()) {
        ("mpi" | "cpu-bind" | "mem-bind", "none" | "no" | "list") | ("het-group" | "pack-group", "0") => true,
        ("gpu-bind", value) => !["closest", "mask_gpu"].iter().any(|kind| value.contains(kind)),
        ("distribution", value) => {
            let first = value.split([':', ',']).next().unwrap_or_default();
            matches!(first, "block" | "cyclic" | "*" | "")
        }
        _ => false,
    };
    if asks_for_nothing { OptionEffect::Honoured } else { option.effect }
}

/// For the shell: `option NAME` sets `name`, `argument` and, where it is refused, `reason`; it fails for what is no option.
pub fn shell_options() -> String {
    let mut text =
        "# The options of `srun`. Made of the table by Danlu.\noption() {\n    case $1 in\n".to_owned();
    for option in OPTIONS {
        let letter = option.letter.map(|letter| format!("-{letter} | ")).unwrap_or_default();
        let argument = match option.argument {
            OptionArgument::None => "none",
            OptionArgument::Optional => "optional",
            OptionArgument::Needed => "needed",
        };
        let name = match option.effect {
            _ if option.long == "tasks-per-node" => "ntasks-per-node",
            _ if option.long == "usage" => "help",
            // Their value decides.
            OptionEffect::Refused(_) if option.long.ends_with("-group") => "het-group",
            OptionEffect::Refused(_) => "refused",
            _ => option.long,
        };
        let _ = write!(text, "    {letter}--{}) name={name} argument={argument}", option.long);
        if let OptionEffect::Refused(reason) = option.effect {
            let _ = write!(text, " reason='{reason}'");
        }
        text += " ;;\n";
    }
    let names: Vec<&str> = OPTIONS.iter().map(|option| option.long).collect();
    let _ = write!(
        text,
        "    --?*)
        # A name may be cut short where only one begins so.
        full=''
        for long in {}; do
            case --$long in \"$1\"*) full=\"$full $long\" ;; esac
        done
        case $full in '' | ' '*' '*) return 1 ;; esac
        option \"--${{full# }}\"
        ;;
    *) return 1 ;;
    esac
}}
",
        names.join(" ")
    );
    text
}

const fn option(
    long: &'static str,
    letter: Option<char>,
    argument: OptionArgument,
    effect: OptionEffect,
) -> SrunOption {
    SrunOption { long, letter, argument, effect }
}

const fn honoured(long: &'static str, letter: Option<char>, argument: OptionArgument) -> SrunOption {
    option(long, letter, argument, OptionEffect::Honoured)
}

const fn irrelevant(long: &'static str, letter: Option<char>, argument: OptionArgument) -> SrunOption {
    option(long, letter, argument, OptionEffect::Irrelevant)
}

const fn ignored(
    long: &'static str,
    letter: Option<char>,
    argument: OptionArgument,
    instead: &'static str,
) -> SrunOption {
    option(long, letter, argument, OptionEffect::Ignored(instead))
}

const fn refused(
    long: &'static str,
    letter: Option<char>,
    argument: OptionArgument,
    reason: &'static str,
) -> SrunOption {
    option(long, letter, argument, OptionEffect::Refused(reason))
}

const BINDING: &str = "tasks are bound to the cores that Danlu chose for their ranks";
const MEMORY: &str = "steps are not limited apart: the memory of the job is shared by all of them";
const CLOCK: &str = "clocks of cores and devices are not changed";
const SAMPLED: &str = "what jobs use is always sampled the same way: `danlu metrics`";
const TERMINAL: &str = "a job has no terminal; `danlu exec -it` opens one in it";
const NO_MPI: &str = "no process manager answers MPI libraries here, and each task becomes a world of its own; `mpirun` starts MPI programs on one node";
const ASYNC: &str = "`srun … &` starts a step beside the script, and `wait` awaits it";
const HOST_PROGRAMS: &str = "jobs run with the programs of their node";
const ONE_PART: &str = "jobs have one part here, group 0";
const ADMINISTRATORS: &str = "only administrators of a cluster do that";
const HOOKS: &str = "Danlu runs no programs around steps or tasks; call it in the script";

use OptionArgument::{Needed, None as Bare, Optional};

static OPTIONS: &[SrunOption] = &[
    honoured("chdir", Some('D'), Needed),
    honoured("cpus-per-task", Some('c'), Needed),
    honoured("error", Some('e'), Needed),
    honoured("exact", None, Bare),
    honoured("exclude", Some('x'), Needed),
    honoured("exclusive", None, Optional),
    honoured("export", None, Needed),
    honoured("gpus", Some('G'), Needed),
    honoured("gpus-per-node", None, Needed),
    honoured("gpus-per-task", None, Needed),
    honoured("gres", None, Needed),
    honoured("help", Some('h'), Bare),
    honoured("immediate", Some('I'), Optional),
    honoured("input", Some('i'), Needed),
    honoured("jobid", None, Needed),
    honoured("kill-on-bad-exit", Some('K'), Optional),
    honoured("label", Some('l'), Bare),
    honoured("multi-prog", None, Bare),
    honoured("nodelist", Some('w'), Needed),
    honoured("nodes", Some('N'), Needed),
    honoured("ntasks", Some('n'), Needed),
    honoured("ntasks-per-gpu", None, Needed),
    honoured("ntasks-per-node", None, Needed),
    honoured("tasks-per-node", None, Needed),
    honoured("open-mode", None, Needed),
    honoured("output", Some('o'), Needed),
    honoured("overcommit", Some('O'), Bare),
    honoured("overlap", None, Bare),
    honoured("relative", Some('r'), Needed),
    honoured("time", Some('t'), Needed),
    honoured("tres-per-task", None, Needed),
    honoured("usage", None, Bare),
    honoured("version", Some('V'), Bare),
    honoured("wait", Some('W'), Needed),
    ignored("distribution", Some('m'), Needed, "tasks are numbered node by node, or in turn with `cyclic`"),
    ignored("gpu-bind", None, Needed, "each task sees all devices that its step has on the node"),
    ignored("tres-bind", None, Needed, "`--gpu-bind` chooses devices of tasks"),
    ignored("accel-bind", None, Needed, BINDING),
    ignored("cores-per-socket", None, Needed, BINDING),
    ignored("cpu-bind", None, Needed, BINDING),
    ignored("cpu_bind", None, Needed, BINDING),
    ignored("extra-node-info", Some('B'), Needed, BINDING),
    ignored("gres-flags", None, Needed, BINDING),
    ignored("hint", None, Needed, BINDING),
    ignored("mem-bind", None, Needed, BINDING),
    ignored("mem_bind", None, Needed, BINDING),
    ignored("ntasks-per-core", None, Needed, BINDING),
    ignored("ntasks-per-socket", None, Needed, BINDING),
    ignored("sockets-per-node", None, Needed, BINDING),
    ignored("threads-per-core", None, Needed, BINDING),
    ignored("core-spec", Some('S'), Needed, BINDING),
    ignored("thread-spec", None, Needed, BINDING),
    ignored("cpus-per-gpu", None, Needed, "`--cpus-per-task` counts cores of a step"),
    ignored("gpus-per-socket", None, Needed, "`--gpus-per-node` counts devices of a step"),
    ignored("mem", None, Needed, MEMORY),
    ignored("mem-per-cpu", None, Needed, MEMORY),
    ignored("mem-per-gpu", None, Needed, MEMORY),
    ignored("oom-kill-step", None, Optional, MEMORY),
    ignored("cpu-freq", None, Needed, CLOCK),
    ignored("gpu-freq", None, Needed, CLOCK),
    ignored("acctg-freq", None, Needed, SAMPLED),
    ignored("profile", None, Needed, SAMPLED),
    ignored("mpi", None, Needed, NO_MPI),
    ignored("resv-ports", None, Optional, NO_MPI),
    ignored("pty", None, Optional, TERMINAL),
    ignored("network", None, Needed, "programs find the network as it is"),
    ignored("signal", None, Needed, "SIGTERM is sent to all tasks when the time of the job is over"),
    ignored("no-kill", Some('k'), Optional, "an attempt ends when one of its nodes is lost"),
    ignored("propagate", None, Optional, "limits are those of the launcher"),
    ignored("bcast", None, Optional, "the program is started from where it is, which all nodes must see"),
    ignored("tmp", None, Needed, "`$TMPDIR` is on the disk of the run folder, and not limited"),
    ignored("ignore-signals", None, Needed, "a signal that ends the job reaches all of its tasks"),
    ignored(
        "wait-for-children",
        None,
        Bare,
        "a task ends with its program; `wait` in that awaits its children",
    ),
    refused("async", None, Bare, ASYNC),
    refused("parsable", None, Bare, ASYNC),
    refused("container", None, Needed, HOST_PROGRAMS),
    refused("container-id", None, Needed, HOST_PROGRAMS),
    refused("container-image", None, Needed, HOST_PROGRAMS),
    refused("container-name", None, Needed, HOST_PROGRAMS),
    refused("epilog", None, Needed, HOOKS),
    refused("prolog", None, Needed, HOOKS),
    refused("task-epilog", None, Needed, HOOKS),
    refused("task-prolog", None, Needed, HOOKS),
    refused("het-group", None, Needed, ONE_PART),
    refused("pack-group", None, Needed, ONE_PART),
    refused("no-allocate", Some('Z'), Bare, ADMINISTRATORS),
    // Of pyxis; without an image they ask for nothing.
    irrelevant("container-entrypoint", None, Bare),
    irrelevant("container-env", None, Needed),
    irrelevant("container-mount-home", None, Bare),
    irrelevant("container-mounts", None, Needed),
    irrelevant("container-remap-root", None, Bare),
    irrelevant("container-save", None, Needed),
    irrelevant("container-type", None, Needed),
    irrelevant("container-workdir", None, Needed),
    irrelevant("container-writable", None, Bare),
    irrelevant("no-container-entrypoint", None, Bare),
    irrelevant("no-container-mount-home", None, Bare),
    irrelevant("no-container-remap-root", None, Bare),
    irrelevant("account", Some('A'), Needed),
    irrelevant("bb", None, Needed),
    irrelevant("bbf", None, Needed),
    irrelevant("bcast-exclude", None, Needed),
    irrelevant("begin", Some('b'), Needed),
    irrelevant("cluster-constraint", None, Needed),
    irrelevant("clusters", Some('M'), Needed),
    irrelevant("comment", None, Needed),
    irrelevant("compress", None, Optional),
    irrelevant("consolidate-segments", None, Bare),
    irrelevant("constraint", Some('C'), Needed),
    irrelevant("contiguous", None, Bare),
    irrelevant("deadline", None, Needed),
    irrelevant("delay-boot", None, Needed),
    irrelevant("dependency", Some('d'), Needed),
    irrelevant("disable-status", Some('X'), Bare),
    irrelevant("external", None, Bare),
    irrelevant("extra", None, Needed),
    irrelevant("hold", Some('H'), Bare),
    irrelevant("job-name", Some('J'), Needed),
    irrelevant("licenses", Some('L'), Needed),
    irrelevant("mail-type", None, Needed),
    irrelevant("mail-user", None, Needed),
    irrelevant("mcs-label", None, Needed),
    irrelevant("mincpus", None, Needed),
    irrelevant("nice", None, Optional),
    irrelevant("oversubscribe", Some('s'), Bare),
    irrelevant("partition", Some('p'), Needed),
    irrelevant("power", None, Needed),
    irrelevant("prefer", None, Needed),
    irrelevant("preserve-env", Some('E'), Bare),
    irrelevant("priority", None, Needed),
    irrelevant("qos", Some('q'), Needed),
    irrelevant("quiet", Some('Q'), Bare),
    irrelevant("quit-on-interrupt", None, Bare),
    irrelevant("reboot", None, Bare),
    irrelevant("reservation", None, Needed),
    irrelevant("segment", None, Needed),
    irrelevant("send-libs", None, Optional),
    irrelevant("slurmd-debug", None, Needed),
    irrelevant("spread-job", None, Bare),
    irrelevant("spread-segments", None, Bare),
    irrelevant("stepmgr", None, Bare),
    irrelevant("switches", None, Needed),
    irrelevant("threads", Some('T'), Needed),
    irrelevant("time-min", None, Needed),
    irrelevant("treewidth", None, Needed),
    irrelevant("unbuffered", Some('u'), Bare),
    irrelevant("use-min-nodes", None, Bare),
    irrelevant("verbose", Some('v'), Bare),
    irrelevant("wckey", None, Needed),
    irrelevant("whole", None, Bare),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Slurm 22.05, as `srun --help` has them.
    const OF_22_05: &str = "
        acctg-freq bb bbf bcast bcast-exclude cluster-constraint comment compress container contiguous
        cores-per-socket cpu-freq cpus-per-gpu deadline delay-boot epilog exact exclusive export gpu-bind
        gpu-freq gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group jobid mail-type
        mail-user mcs-label mem mem-per-cpu mem-per-gpu mincpus mpi multi-prog nice ntasks-per-core
        ntasks-per-node ntasks-per-socket overlap power priority profile prolog propagate pty
        quit-on-interrupt reboot reservation resv-ports send-libs signal slurmd-debug sockets-per-node
        spread-job switches task-epilog task-prolog thread-spec threads-per-core time-min tmp usage
        use-min-nodes wckey -A/account -B/extra-node-info -C/constraint -D/chdir -E/preserve-env -G/gpus
        -H/hold -I/immediate -J/job-name -K/kill-on-bad-exit -L/licenses -M/clusters -N/nodes -O/overcommit
        -Q/quiet -S/core-spec -T/threads -V/version -W/wait -X/disable-status -Z/no-allocate -b/begin
        -c/cpus-per-task -d/dependency -e/error -h/help -i/input -k/no-kill -l/label -m/distribution
        -n/ntasks -o/output -p/partition -q/qos -r/relative -s/oversubscribe -t/time -u/unbuffered
        -v/verbose -w/nodelist -x/exclude";

    #[test]
    fn every_option_of_srun_is_known_by_its_name_and_letter() {
        for written in OF_22_05.split_whitespace() {
            let (letter, long) = match written.split_once('/') {
                Some((letter, long)) => (letter.chars().nth(1), long),
                None => (None, written),
            };
            let known = option_by_name(long).unwrap_or_else(|| panic!("`--{long}` is not in the table"));
            assert_eq!((known.long, known.letter), (long, letter));
        }
    }

    #[test]
    fn no_name_and_no_letter_is_there_twice() {
        for (at, option) in OPTIONS.iter().enumerate() {
            for other in &OPTIONS[at + 1..] {
                assert_ne!(option.long, other.long);
                assert!(option.letter.is_none() || option.letter != other.letter, "{other:?}");
            }
        }
    }

    #[test]
    fn some_values_ask_for_nothing() {
        let of = |name: &str, value: &str| effect(option_by_name(name).unwrap(), Some(value));
        assert_eq!(of("mpi", "none"), OptionEffect::Honoured);
        assert!(matches!(of("mpi", "pmix"), OptionEffect::Ignored(_)));
        assert_eq!(of("gpu-bind", "single:1"), OptionEffect::Honoured);
        assert!(matches!(of("gpu-bind", "closest"), OptionEffect::Ignored(_)));
        assert!(matches!(of("distribution", "arbitrary"), OptionEffect::Ignored(_)));
    }

    #[test]
    fn the_shell_gets_the_whole_table() {
        let text = shell_options();
        assert!(text.contains("    -n | --ntasks) name=ntasks argument=needed ;;\n"), "{text}");
        assert!(
            text.contains("--prolog) name=refused argument=needed reason='Danlu runs no programs"),
            "{text}"
        );
        assert_eq!(text.matches("name=").count(), OPTIONS.len());
        assert!(OPTIONS.iter().all(|option| match option.effect {
            OptionEffect::Ignored(text) | OptionEffect::Refused(text) => !text.contains('\''),
            OptionEffect::Honoured | OptionEffect::Irrelevant => true,
        }));
    }
}
