//! An allocation whose nodes share no disk with the server: its script, and where its sidecars keep what they carry.
//!
//! The invariant of [`super::order`] holds here too, with the server's disk in place of a shared one: before anything is
//! started, the script has the server claim the order. No secret is in the script or on a command line. The sidecars' token
//! comes in the environment, the only way that `sbatch` has, and other programs of the same user could read it there: the
//! script goes on at once without it, and hands it on by standard input.

use std::path::{Path, PathBuf};

use danlu_types::{AttemptNumber, WorkerIndex};

use super::allocation_folder_name;
use super::order::{AllocationRequest, quoted, step};

/// In the environment with which Slurm starts the script, and of nothing else.
pub const TOKEN_VARIABLE: &str = "DANLU_SIDECAR_TOKEN";

/// How the claim ends where another job has the order: nothing is to be run, and nothing is wrong.
pub const CLAIMED_BY_ANOTHER: u8 = 3;

/// How a sidecar reaches the server, and where it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarConfig {
    /// Without a slash at its end.
    pub server: String,
    /// Of the server's certificate, where nobody else vouches for it.
    pub fingerprint: Option<String>,
    /// A folder of each node's own.
    pub work: PathBuf,
    pub program: NodeProgram,
}

/// The binary on nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeProgram {
    At(String),
    /// Fetched from the server, once for each node; the SHA-256 of it in hexadecimal digits.
    Fetched(String),
}

/// A worker's folder on its node: `run/` and what else its launcher finds.
pub fn sidecar_folder(work: &Path, order_name: &str, worker: WorkerIndex) -> PathBuf {
    work.join(order_name).join(worker.to_string())
}

/// The attempt's part that a folder's name names; `None` for a name that is no such folder's, or another attempt's.
pub fn parse_allocation_name(name: &str, attempt: AttemptNumber) -> Option<usize> {
    let part = name.rsplit('.').next()?.parse().ok()?;
    (allocation_folder_name(attempt, part) == name).then_some(part)
}

/// The script that Slurm runs on the first node. `allocation` is the name of the allocation's folder on the server.
pub fn remote_script(order: &AllocationRequest, allocation: &str, sidecar: &SidecarConfig) -> String {
    let work = quoted(&sidecar.work.display().to_string());
    let way = format!(
        "{} {} {} {work}",
        quoted(&sidecar.server),
        quoted(sidecar.fingerprint.as_deref().unwrap_or("-")),
        quoted(allocation),
    );
    let granted = if order.asks_what_was_granted() {
        "# Which devices of each node are ours.\n\
         granted=$(scontrol --details show job \"$SLURM_JOB_ID\" 2>&1)\n"
    } else {
        "granted=\n"
    };
    let program = program(sidecar);
    // For this user only: launch files hold users' environment.
    let open = "mkdir -p \"$work\" && chmod 700 \"$work\" || exit 70\n";
    // What is read here lies in a pipe, and in none any more once it is read.
    let token = "<<END\n$token\nEND";
    let carry = format!("exec \"$program\" slurm-sidecar {way} {token}");
    let start = if order.workers.len() == 1 {
        carry
    } else {
        // `srun` gives all of its tasks what it reads.
        let task = format!("read -r token\nwork={work}\n{open}{program}{carry}\n");
        format!("exec {} sh -c {} {token}", step(order), quoted(&task))
    };
    format!(
        "#!/bin/sh\n\
         # Written by Danlu: starts the workers of one attempt, on nodes that share no disk with the server.\n\
         # Programs of this user can read our environment: on without the token in it.\n\
         if [ -n \"${TOKEN_VARIABLE}\" ]; then\n\
         exec env -u {TOKEN_VARIABLE} sh \"$0\" <<END\n\
         ${TOKEN_VARIABLE}\n\
         END\n\
         fi\n\
         read -r token\n\
         work={work}\n\
         {open}\
         exec >> \"$work\"/{}.log 2>&1\n\
         {program}{granted}\
         # Whoever comes second runs nothing: the job may have been submitted twice, or be run again.\n\
         printf '%s\\n%s' \"$token\" \"$granted\" | \"$program\" slurm-claim {way} \"$SLURM_JOB_ID\"\n\
         case $? in 0) ;; {CLAIMED_BY_ANOTHER}) exit 0 ;; *) exit 71 ;; esac\n\
         {start}\n",
        order.name,
    )
}

/// Sets `$program`, once it is there.
fn program(sidecar: &SidecarConfig) -> String {
    let digest = match &sidecar.program {
        NodeProgram::At(path) => return format!("program={}\n", quoted(path)),
        NodeProgram::Fetched(digest) => digest,
    };
    let address = quoted(&format!("{}/api/v1/sidecar/programs/{digest}", sidecar.server));
    // Headers on a command line are seen by everybody on the node.
    format!(
        "program=\"$work\"/bin/danlu-{digest}\n\
         fetch() {{\n\
         if command -v curl > /dev/null; then\n\
         printf 'header = \"Authorization: Bearer %s\"\\n' \"$token\" | \
         curl --fail --silent --show-error --noproxy '*' --max-time 600 --config - --output \"$2\" \"$1\"\n\
         elif command -v python3 > /dev/null; then\n\
         printf '%s' \"$token\" | python3 -c 'import shutil, sys, urllib.request as web\n\
         ask = web.Request(sys.argv[1], headers={{\"Authorization\": \"Bearer \" + sys.stdin.read()}})\n\
         with web.build_opener(web.ProxyHandler({{}})).open(ask, timeout=60) as answer, open(sys.argv[2], \"wb\") as file:\n    \
         shutil.copyfileobj(answer, file)' \"$1\" \"$2\"\n\
         else\n\
         # It takes no pipe.\n\
         (umask 077; printf 'header = Authorization: Bearer %s\\n' \"$token\" > \"$2\".rc)\n\
         wget --quiet --no-proxy --tries=1 --timeout=60 --config=\"$2\".rc --output-document=\"$2\" \"$1\"\n\
         fi\n\
         }}\n\
         turn=0\n\
         until [ -x \"$program\" ]; do\n\
         mkdir -p \"$work\"/bin\n\
         draft=\"$program\".$$.new\n\
         fetch {address} \"$draft\" && echo '{digest}  '\"$draft\" | sha256sum --check --status && chmod 700 \"$draft\" && mv -f \"$draft\" \"$program\"\n\
         rm -f \"$draft\" \"$draft\".rc\n\
         [ -x \"$program\" ] && break\n\
         turn=$((turn + 1))\n\
         [ \"$turn\" -lt 120 ] || {{ echo 'could not fetch the program from the server'; exit 72; }}\n\
         sleep 5\n\
         done\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::order::{RequestedWorker, order_of};
    use super::*;

    fn order(workers: u32) -> AllocationRequest {
        let worker = |index: u32| RequestedWorker {
            worker: format!("7.1.{index}").parse().unwrap(),
            node: format!("n{}", index + 1),
            run: format!("/data/runs/7/1.{index}").into(),
            needs: Vec::new(),
        };
        order_of((0..workers).map(worker).collect())
    }

    fn sidecar(program: NodeProgram) -> SidecarConfig {
        let (server, work) = ("https://head:8765".to_owned(), "/var/tmp/it's".into());
        SidecarConfig { server, fingerprint: None, work, program }
    }

    #[test]
    fn the_script_has_the_server_claim_the_order_before_it_starts_anything() {
        let script =
            remote_script(&order(2), "1.slurm.0", &sidecar(NodeProgram::At("/opt/danlu".to_owned())));
        insta::assert_snapshot!(script, @r#"
        #!/bin/sh
        # Written by Danlu: starts the workers of one attempt, on nodes that share no disk with the server.
        # Programs of this user can read our environment: on without the token in it.
        if [ -n "$DANLU_SIDECAR_TOKEN" ]; then
        exec env -u DANLU_SIDECAR_TOKEN sh "$0" <<END
        $DANLU_SIDECAR_TOKEN
        END
        fi
        read -r token
        work='/var/tmp/it'\''s'
        mkdir -p "$work" && chmod 700 "$work" || exit 70
        exec >> "$work"/danlu-7.1-ab.log 2>&1
        program='/opt/danlu'
        granted=
        # Whoever comes second runs nothing: the job may have been submitted twice, or be run again.
        printf '%s\n%s' "$token" "$granted" | "$program" slurm-claim 'https://head:8765' '-' '1.slurm.0' '/var/tmp/it'\''s' "$SLURM_JOB_ID"
        case $? in 0) ;; 3) exit 0 ;; *) exit 71 ;; esac
        exec srun --mpi=none --cpu-bind=none --kill-on-bad-exit=1 --wait=0 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=1 sh -c 'read -r token
        work='\''/var/tmp/it'\''\'\'''\''s'\''
        mkdir -p "$work" && chmod 700 "$work" || exit 70
        program='\''/opt/danlu'\''
        exec "$program" slurm-sidecar '\''https://head:8765'\'' '\''-'\'' '\''1.slurm.0'\'' '\''/var/tmp/it'\''\'\'''\''s'\'' <<END
        $token
        END
        ' <<END
        $token
        END
        "#);
    }

    #[test]
    fn the_program_is_fetched_and_checked_on_every_node() {
        let script = remote_script(&order(1), "1.slurm.0", &sidecar(NodeProgram::Fetched("ab12".to_owned())));
        insta::assert_snapshot!(script, @r#"
        #!/bin/sh
        # Written by Danlu: starts the workers of one attempt, on nodes that share no disk with the server.
        # Programs of this user can read our environment: on without the token in it.
        if [ -n "$DANLU_SIDECAR_TOKEN" ]; then
        exec env -u DANLU_SIDECAR_TOKEN sh "$0" <<END
        $DANLU_SIDECAR_TOKEN
        END
        fi
        read -r token
        work='/var/tmp/it'\''s'
        mkdir -p "$work" && chmod 700 "$work" || exit 70
        exec >> "$work"/danlu-7.1-ab.log 2>&1
        program="$work"/bin/danlu-ab12
        fetch() {
        if command -v curl > /dev/null; then
        printf 'header = "Authorization: Bearer %s"\n' "$token" | curl --fail --silent --show-error --noproxy '*' --max-time 600 --config - --output "$2" "$1"
        elif command -v python3 > /dev/null; then
        printf '%s' "$token" | python3 -c 'import shutil, sys, urllib.request as web
        ask = web.Request(sys.argv[1], headers={"Authorization": "Bearer " + sys.stdin.read()})
        with web.build_opener(web.ProxyHandler({})).open(ask, timeout=60) as answer, open(sys.argv[2], "wb") as file:
            shutil.copyfileobj(answer, file)' "$1" "$2"
        else
        # It takes no pipe.
        (umask 077; printf 'header = Authorization: Bearer %s\n' "$token" > "$2".rc)
        wget --quiet --no-proxy --tries=1 --timeout=60 --config="$2".rc --output-document="$2" "$1"
        fi
        }
        turn=0
        until [ -x "$program" ]; do
        mkdir -p "$work"/bin
        draft="$program".$$.new
        fetch 'https://head:8765/api/v1/sidecar/programs/ab12' "$draft" && echo 'ab12  '"$draft" | sha256sum --check --status && chmod 700 "$draft" && mv -f "$draft" "$program"
        rm -f "$draft" "$draft".rc
        [ -x "$program" ] && break
        turn=$((turn + 1))
        [ "$turn" -lt 120 ] || { echo 'could not fetch the program from the server'; exit 72; }
        sleep 5
        done
        granted=
        # Whoever comes second runs nothing: the job may have been submitted twice, or be run again.
        printf '%s\n%s' "$token" "$granted" | "$program" slurm-claim 'https://head:8765' '-' '1.slurm.0' '/var/tmp/it'\''s' "$SLURM_JOB_ID"
        case $? in 0) ;; 3) exit 0 ;; *) exit 71 ;; esac
        exec "$program" slurm-sidecar 'https://head:8765' '-' '1.slurm.0' '/var/tmp/it'\''s' <<END
        $token
        END
        "#);
    }

    #[test]
    fn only_folders_of_the_attempt_are_allocations() {
        let attempt = AttemptNumber(2);
        assert_eq!(parse_allocation_name("2.slurm.0", attempt), Some(0));
        assert_eq!(parse_allocation_name("2.slurm.13", attempt), Some(13));
        for other in
            ["1.slurm.0", "2.slurm.00", "2.slurm.+1", "2.slurm.", "2.slurm.0/..", "..", "", "2.slurm.0 "]
        {
            assert_eq!(parse_allocation_name(other, attempt), None, "{other}");
        }
    }
}
