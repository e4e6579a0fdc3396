//! Every situation in which people ask why, one after the other: what is printed for them, and whether each command that is
//! suggested, pasted as it is by whoever asked, starts the job.

use std::fmt::Write as _;

use danlu_types::account::WorkspaceRole;
use danlu_types::api::JobState;
use danlu_types::{JobId, ReasonCode};

use crate::site::Site;

/// A person, and what they submit or do.
type Step = (&'static str, &'static str);

struct Situation {
    name: &'static str,
    nodes: &'static str,
    rules: &'static str,
    /// What is running before, each by the flags of `danlu submit`, or as a whole line.
    before: &'static [Step],
    /// The job that is asked about, by the one who asks.
    job: Step,
    /// What is done to it before it is asked about; `JOB` stands for its number.
    then: &'static [Step],
    /// The reason that is waited for.
    code: &'static str,
}

const A100: &str = "1x8:nvidia:A100";
const USUAL: Situation = Situation {
    name: "",
    nodes: A100,
    rules: "",
    before: &[("admin", "--devices nvidia:8")],
    job: ("admin", "--devices nvidia:8"),
    then: &[],
    code: "devices_busy",
};
const LIMITS: &str = "\
workspaces:
  vision: { limit: { nvidia: 4 }, per_user: { nvidia: 3 } }
  strict: { approve_above: { nvidia: 1 } }
  gpu: { guaranteed: { nvidia: 4 } }
";
const STUBBORN: &str = "danlu submit --devices nvidia:8 --preemptible --priority 1 --set grace=1h -- 'trap \"\" TERM; while :; do sleep 1; done'";

fn situations() -> Vec<Situation> {
    vec![
        Situation {
            name: "a ring that does not fit",
            nodes: "1x8:ascend:910A,1x8:ascend:910B3",
            before: &[
                ("admin", "--devices ascend:910A:2"),
                ("admin", "--devices ascend:910A:1"),
                ("admin", "--devices ascend:910A:2"),
            ],
            job: ("admin", "--devices ascend:910A:8"),
            ..USUAL
        },
        Situation {
            name: "a gang",
            nodes: "2x8:nvidia:A100",
            before: &[("admin", "--devices nvidia:6")],
            job: ("admin", "--workers 2 --devices nvidia:8"),
            ..USUAL
        },
        Situation { name: "held", then: &[("admin", "danlu hold JOB")], code: "held", ..USUAL },
        Situation {
            name: "needs approval",
            rules: LIMITS,
            before: &[],
            job: ("bob", "--workspace strict --devices nvidia:2"),
            code: "needs_approval",
            ..USUAL
        },
        Situation {
            name: "a limit for each person",
            rules: LIMITS,
            before: &[("bob", "--workspace vision --devices nvidia:2")],
            job: ("bob", "--workspace vision --devices nvidia:2"),
            code: "user_limit",
            ..USUAL
        },
        Situation {
            name: "a limit of the workspace",
            rules: LIMITS,
            before: &[("bob", "--workspace vision --devices nvidia:3")],
            job: ("eve", "--workspace vision --devices nvidia:2"),
            code: "workspace_limit",
            ..USUAL
        },
        Situation {
            name: "others are being preempted",
            rules: "minimum_run_time: 0s\n",
            before: &[("admin", STUBBORN)],
            job: ("admin", "--devices nvidia:8 --priority 9"),
            code: "preempting",
            ..USUAL
        },
        Situation {
            name: "a preemptible holder within its minimum run time",
            rules: "minimum_run_time: 1h\n",
            before: &[("admin", "--devices nvidia:8 --preemptible --priority 1")],
            job: ("admin", "--devices nvidia:8 --priority 9"),
            ..USUAL
        },
        Situation {
            name: "reserved for the head",
            before: &[
                ("admin", "--name filler --devices nvidia:6 --max-time 2h"),
                ("admin", "danlu submit --name head --devices nvidia:8 --max-time 1h -- sleep 1000"),
            ],
            job: ("admin", "--name long --devices nvidia:2 --max-time 24h"),
            code: "reserved",
            ..USUAL
        },
        Situation {
            name: "guaranteed to others",
            rules: LIMITS,
            before: &[("admin", "--devices nvidia:4")],
            job: ("admin", "--devices nvidia:2"),
            code: "guaranteed_to_others",
            ..USUAL
        },
        Situation {
            name: "behind the head",
            rules: "workspaces: { default: { head_of_line: strict } }\n",
            before: &[
                ("admin", "--name filler --devices nvidia:6 --max-time 2h"),
                ("admin", "danlu submit --name head --devices nvidia:8 --max-time 1h -- sleep 1000"),
            ],
            job: ("admin", "--name second --devices nvidia:2 --max-time 1h"),
            code: "queued_behind",
            ..USUAL
        },
        Situation {
            name: "CPUs",
            before: &[("admin", "--cpus 180"), ("admin", "--devices nvidia:1")],
            job: ("admin", "--devices nvidia:1 --cpus 32"),
            code: "cpus_busy",
            ..USUAL
        },
        Situation {
            name: "memory",
            before: &[("admin", "--memory 1500Gi"), ("admin", "--devices nvidia:1")],
            job: ("admin", "--devices nvidia:1 --memory 64Gi"),
            code: "memory_busy",
            ..USUAL
        },
        Situation {
            name: "cordoned nodes",
            before: &[("admin", "danlu nodes cordon sim-nvidia-a100-0 --why 'new fans'")],
            code: "nodes_cordoned",
            ..USUAL
        },
        Situation {
            name: "a back-off",
            before: &[],
            job: ("admin", "danlu submit --retry 9 --set retry.on=[exit] -- 'exit 5'"),
            code: "retry_backoff",
            ..USUAL
        },
        Situation { name: "running", before: &[], code: "running", ..USUAL },
        Situation {
            name: "ended",
            before: &[],
            then: &[("admin", "danlu stop JOB --grace 0s")],
            code: "stopped",
            ..USUAL
        },
    ]
}

async fn site_of(situation: &Situation) -> Site {
    let mut site = Site::new(situation.nodes, situation.rules).await;
    if situation.rules == LIMITS {
        let member = WorkspaceRole::Member;
        let roles = [("vision", member), ("strict", member), ("gpu", WorkspaceRole::Viewer)];
        site.person("bob", &roles).await;
        site.person("eve", &[("vision", member)]).await;
    }
    site
}

/// Makes a situation; the job that is asked about, once it waits for the reason that it should.
async fn set_up(site: &Site, situation: &Situation) -> JobId {
    for (who, line) in situation.before {
        if !line.starts_with("danlu") {
            site.start(who, line).await;
        } else if let Ok(id) = site.printed(who, line).trim().parse::<u64>()
            && !line.contains("head")
        {
            site.server.wait_for(JobId(id), JobState::Running).await;
        }
    }
    let (who, line) = situation.job;
    let id = if line.starts_with("danlu") {
        site.printed(who, line).trim().parse().unwrap()
    } else {
        site.submit(who, line)
    };
    for (who, line) in situation.then {
        // As people do, who see that it waits.
        danlu_testkit::eventually("the scheduler to have looked at it", || async {
            let code = site.server.job(id).await.reason.code();
            (!matches!(code, ReasonCode::SchedulingPending | ReasonCode::AboutToStart)).then_some(())
        })
        .await;
        site.printed(who, &line.replace("JOB", &id.to_string()));
    }
    danlu_testkit::eventually(&format!("{}: job {id} to be {}", situation.name, situation.code), || async {
        let explanation = site.why(id).await;
        (explanation.reason.word() == situation.code || explanation.state.as_str() == situation.code)
            .then_some(())
    })
    .await;
    id
}

/// Without what differs from run to run: lengths of time, and where lines are broken.
fn plain(page: &str) -> String {
    let is_time = |word: &str| {
        let word = word.trim_end_matches(['.', ',', ';', ')']);
        let is_length = word.ends_with(['s', 'm', 'h', 'd'])
            && word.chars().all(|c| c.is_ascii_digit() || "smhd".contains(c));
        let is_moment = word.ends_with('Z') && word.contains('T') && word.contains(':');
        word.starts_with(|c: char| c.is_ascii_digit()) && (is_length || is_moment)
    };
    let mut text = String::new();
    for paragraph in page.split("\n\n") {
        let is_table = paragraph.starts_with("HELD") || paragraph.starts_with("suggestions");
        for line in paragraph.lines() {
            let mut was_time = false;
            for word in line.split_whitespace() {
                let tail = &word[word.trim_end_matches(['.', ',', ';', ')']).len()..];
                let word = word.find("max_time=").map_or(word, |at| &word[..at + "max_time=".len()]);
                match (is_time(word), was_time) {
                    // `1h 30m` is one length.
                    (true, true) => text = format!("{}{tail} ", text.trim_end()),
                    (true, false) => write!(text, "[TIME]{tail} ").unwrap(),
                    (false, _) => write!(text, "{word} ").unwrap(),
                }
                was_time = is_time(word);
            }
            if is_table {
                text = format!("{}\n", text.trim_end());
            }
        }
        text = format!("{}\n", text.trim_end());
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn in_every_situation_why_is_right_and_each_suggestion_starts_the_job() {
    let mut pages = String::new();
    for situation in situations() {
        let who = situation.job.0;
        for taken in 0.. {
            // A new one each time: a scheduler learns how long jobs of a name take.
            let site = site_of(&situation).await;
            let id = set_up(&site, &situation).await;
            let question = format!("danlu why {id}");
            let page = site.printed(who, &question);
            if taken == 0 {
                writeln!(pages, "## {} ({who} asks)\n{}", situation.name, plain(&page)).unwrap();
            }
            let suggestions = site.suggestions(who, &question);
            let Some(command) = suggestions.get(taken) else { break };
            site.printed(who, command);
            site.has_started(id).await;
        }
    }
    insta::assert_snapshot!(pages);
}

/// The length of jobs of this name is known from those before.
#[tokio::test(flavor = "multi_thread")]
async fn past_durations_are_gone_by_and_come_true() {
    let site = Site::new(A100, "").await;
    let submit = |seconds: u32| {
        let line = format!("danlu submit --name epoch --devices nvidia:8 --set grace=1s -- sleep {seconds}");
        site.printed("admin", &line).trim().parse::<JobId>().unwrap()
    };
    for _ in 0..3 {
        site.server.wait_for_end(submit(8)).await;
    }
    // On a machine so busy that the holder is over its time before anybody asks, once more.
    danlu_testkit::eventually("an estimate by past durations", || async {
        let holder = submit(8);
        site.server.wait_for(holder, JobState::Running).await;
        let waits = site.submit("admin", "--name epoch --devices nvidia:8");
        site.waits_for(waits, "devices_busy").await;
        let page = site.printed("admin", &format!("danlu why {waits}")).replace('\n', " ");
        site.server.wait_for_end(holder).await;
        // It comes true.
        site.has_started(waits).await;
        site.clear().await;
        page.contains("past durations of jobs like").then_some(())
    })
    .await;
}
