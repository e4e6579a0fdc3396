"""Holds what the platform tells against what the witnesses wrote, and against the kernel."""

import collections
import os
import pathlib
import re
import sqlite3

from platform_under_test import Answer

# The last job of a storm, which only asks for all devices.
WITHOUT_WITNESS = "all-devices"
# An attempt that has ended this long before its launcher was killed should have been told. What a launcher does after the last of
# its ranks has ended takes milliseconds, on a busy machine some hundreds of them.
A_MOMENT_NS = 1_000_000_000
# Said by the launcher when a program leaves something running.
BACKGROUND = "the command has ended; ending what it left running"
LINE = re.compile(r"line (\d+) of (\d+) of job (\d+) attempt (\d+) rank (\d+)$")


class Run:
    """One rank in one attempt, by its own marks."""

    def __init__(self):
        self.starts, self.beats, self.children, self.steps = [], [], [], []
        self.printed, self.code, self.groups = 0, None, ""
        self.node, self.devices, self.worker = "", [], 0

    def last(self):
        return max([*self.starts, *self.beats, *self.children], default=0)


def read_marks(folder):
    """{job: {attempt: {rank: Run}}} and what the witnesses complained of."""
    jobs = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(Run)))
    complaints = []
    for path in folder.iterdir():
        if path.is_dir():
            continue
        job, rank = map(int, path.name.split("."))
        for line in path.read_text().splitlines():
            kind, at, attempt, *rest = line.split("\t")
            run, at = jobs[job][int(attempt)][rank], int(at)
            if kind == "start":
                run.starts.append(at)
                run.node, run.worker, run.groups = rest[1], int(rest[3]), rest[4]
                run.devices = [device for device in rest[2].split(",") if device]
            elif kind == "beat":
                run.beats.append(at)
                run.printed = max(run.printed, int(rest[0]))
            elif kind == "child":
                run.children.append(at)
            elif kind == "end":
                run.beats.append(at)
                run.code, run.printed = int(rest[0]), int(rest[1])
            elif kind == "violation":
                complaints.append(f"job {job} attempt {attempt} rank {rank}: {rest[0]}")
            else:
                run.steps.append((kind, int(rest[0])))
    return jobs, complaints


class Verdict:
    def __init__(self):
        self.counts, self.told = collections.Counter(), collections.defaultdict(list)

    def add(self, kind, text):
        self.counts[kind] += 1
        self.told[kind].append(text)


MUST_BE_NONE = [
    "jobs_lost", "jobs_doubled", "lines_lost", "lines_doubled", "lines_misplaced", "ran_twice", "overlapping_attempts",
    "device_twice", "orphans", "live_markers", "cgroups_left", "finished_but_told_otherwise", "told_succeeded_but_did_not",
    "wrong_outcome", "checkpoints_lost", "database_damaged", "panics",
]


def overlaps(spans):
    """Pairs of neighbours of which the first had not ended when the second began."""
    spans.sort()
    return [(first, second) for first, second in zip(spans, spans[1:]) if first[1] > second[0]]


def check_job(platform, site, verdict, number, expected, name, attempts):
    try:
        job = platform.ask("GET", f"/jobs/{number}")
    except Answer as error:
        verdict.add("jobs_lost", f"job {number} ({name}): {error}")
        return
    told = {attempt["number"]: attempt for attempt in job["attempts"]}
    verdict.counts["attempts"] += len(told)
    verdict.counts["jobs"] += 1
    if job["state"] != "ended":
        verdict.add("wrong_outcome", f"job {number} ({name}) is {job['state']}: {job['reason']['text']}")
        return
    if job.get("outcome") != expected and not (expected == "stopped" and number not in site.stopped):
        verdict.add("wrong_outcome", f"job {number} ({name}) {job.get('outcome')}, not {expected}: {job['reason']['text']}")
    ranks = job["spec"]["workers"] * (job["spec"].get("ranks") or 1)
    finished = []
    for attempt, runs in sorted(attempts.items()):
        if attempt not in told:
            verdict.add("ran_twice", f"job {number} attempt {attempt} ran and is not known")
            continue
        for rank, run in runs.items():
            if len(run.starts) != 1:
                verdict.add("ran_twice", f"job {number} attempt {attempt} rank {rank} was started {len(run.starts)} times")
        if len(runs) == ranks and all(run.code == 0 for run in runs.values()):
            finished.append(attempt)
            was_killed = any(was_killed_at_the_end(site, f"{number}.{attempt}.{run.worker}", runs) for run in runs.values())
            is_last = attempt == max(told)
            told_well = is_last and job.get("outcome") == "succeeded"
            if not told_well and was_killed:
                verdict.counts["finished_under_a_killed_launcher"] += 1
            elif not told_well and number not in site.stopped:
                verdict.add(
                    "finished_but_told_otherwise",
                    f"job {number} ({name}) attempt {attempt}: {told[attempt]['reason']['text']}; the job: {job['reason']['text']}",
                )
    if job.get("outcome") == "succeeded" and max(told) not in finished and name != WITHOUT_WITNESS:
        verdict.add("told_succeeded_but_did_not", f"job {number} ({name}) attempt {max(told)}")
    spans = [
        (min(run.starts[0] for run in runs.values() if run.starts), max(run.last() for run in runs.values()), attempt)
        for attempt, runs in attempts.items()
        if any(run.starts for run in runs.values())
    ]
    for first, second in overlaps(spans):
        verdict.add("overlapping_attempts", f"job {number}: attempts {first[2]} and {second[2]}")
    check_steps(verdict, number, attempts)
    for attempt, runs in attempts.items():
        for rank, run in runs.items() if attempt in told else []:
            check_lines(platform, site, verdict, number, attempt, rank, run)


def was_killed_at_the_end(site, worker, runs):
    """Whether a launcher was killed when it could not have told yet that all ranks had ended."""
    killed = site.killed_launchers.get(worker)
    # One that stands still tells nothing.
    over = max([*(run.last() for run in runs.values()), site.frozen_until.get(worker, 0)])
    return killed is not None and killed - over < A_MOMENT_NS


def check_steps(verdict, number, attempts):
    saved = 0
    for attempt, runs in sorted(attempts.items()):
        for kind, step in runs[0].steps if 0 in runs else []:
            # It may have been killed between the step and its mark.
            if kind == "resumed" and step not in (saved, saved + 1):
                verdict.add("checkpoints_lost", f"job {number} attempt {attempt}: resumed from {step}, {saved} was saved")
            saved = step


def check_lines(platform, site, verdict, number, attempt, rank, run):
    if attempt in site.attempts_without_logs:
        return
    seen = -1
    for line in platform.pages(f"/jobs/{number}/logs?attempt={attempt}&rank={rank}"):
        found = LINE.match(line["text"])
        if line["text"].startswith(BACKGROUND):
            verdict.counts["background_ended"] += 1
            continue
        if not found:
            verdict.add("lines_misplaced", f"job {number} attempt {attempt} rank {rank}: {line['text'][:200]!r}")
            continue
        index, _, *origin = map(int, found.groups())
        verdict.counts["lines"] += 1
        if origin != [number, attempt, rank]:
            verdict.add("lines_misplaced", f"job {number} attempt {attempt} rank {rank} has a line of {origin}")
        elif index <= seen:
            verdict.add("lines_doubled", f"job {number} attempt {attempt} rank {rank}: line {index} after {seen}")
        else:
            missing = index - seen - 1
            if missing:
                verdict.counts["lines_lost"] += missing - 1
                verdict.add("lines_lost", f"job {number} attempt {attempt} rank {rank}: {missing} before line {index}")
            seen = index
    missing = run.printed - seen - 1
    if missing > 0:
        if f"{number}.{attempt}.{run.worker}" in site.killed_launchers:
            verdict.counts["lines_in_pipes_of_killed_launchers"] += missing
        else:
            verdict.counts["lines_lost"] += missing - 1
            verdict.add("lines_lost", f"job {number} attempt {attempt} rank {rank}: the last {missing} of {run.printed}")


def check_devices(platform, site, verdict, jobs):
    held = collections.defaultdict(list)
    for number, attempts in jobs.items():
        for attempt, runs in attempts.items():
            spans = collections.defaultdict(list)
            for run in runs.values():
                for device in run.devices:
                    spans[run.node, device] += [*run.starts[:1], run.last()]
            for key, times in spans.items():
                held[key].append((min(times), max(times), number, attempt))
    for key, spans in held.items():
        for first, second in overlaps(spans):
            verdict.add("device_twice", f"{key}: jobs {first[2:]} and {second[2:]}, by their marks")
    held = collections.defaultdict(list)
    for job in platform.pages("/jobs"):
        for attempt in job["attempts"]:
            for worker in attempt["workers"]:
                for device in worker["devices"]:
                    span = (attempt["placed_at"], attempt["ended_at"], job["id"], attempt["number"])
                    held[worker["node"], device].append(span)
    for key, spans in held.items():
        for first, second in overlaps(spans):
            verdict.add("device_twice", f"{key}: jobs {first[2:]} and {second[2:]}, by the record")


def check_what_is_left(platform, site, verdict, jobs):
    own = [platform.process.pid, platform.nursery()]
    for pid in platform.processes():
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        if pid not in own and command:
            verdict.add("orphans", f"{pid}: {command}")
    for marker in (platform.data / "live").glob("*"):
        verdict.add("live_markers", marker.name)
    groups = {run.groups for attempts in jobs.values() for runs in attempts.values() for run in runs.values()}
    paths = set()
    for line in filter(None, ";".join(groups).split(";")):
        _, controllers, path = line.split(":", 2)
        if "danlu-" in path:
            for mount in [f"/sys/fs/cgroup/{controllers or 'unified'}", "/sys/fs/cgroup"]:
                paths.add(mount + path)
    verdict.counts["cgroups"] = len({path for path in map(os.path.basename, paths)})
    for path in paths:
        if os.path.isdir(path):
            verdict.add("cgroups_left", path)


def check_database(platform, verdict):
    """With the server away: the file as the next one would find it."""
    file = platform.data / "danlu.db"
    if file.exists():
        connection = sqlite3.connect(file)
        said = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        connection.close()
        if said != ["ok"]:
            verdict.add("database_damaged", "; ".join(said[:5]))


def check_log(platform, verdict):
    for line in (platform.folder / "server.log").read_text(errors="replace").splitlines():
        if "panicked" in line:
            verdict.add("panics", line)
        elif " ERROR " in line:
            verdict.counts["errors_logged"] += 1
            verdict.told["errors_logged"].append(line)
        elif " WARN " in line:
            verdict.counts["warnings_logged"] += 1


def verify(platform, site):
    verdict = Verdict()
    jobs, complaints = read_marks(site.marks)
    for text in complaints:
        verdict.add("device_twice" if "/job-" not in text else "overlapping_attempts", text)
    listed = list(platform.pages("/jobs"))
    for name, count in collections.Counter(job["name"] for job in listed).items():
        if count > 1:
            verdict.add("jobs_doubled", f"{name}: {count} times")
    known = {job["id"] for job in listed}
    for number, (name, expected) in sorted(site.submitted.items()):
        if number not in known:
            verdict.add("jobs_lost", f"job {number} ({name}) is not listed")
        check_job(platform, site, verdict, number, expected, name, jobs.get(number, {}))
    for number in known - set(site.submitted):
        verdict.add("jobs_doubled", f"job {number} was never answered")
    check_devices(platform, site, verdict, jobs)
    check_what_is_left(platform, site, verdict, jobs)
    platform.kill(15)
    check_database(platform, verdict)
    check_log(platform, verdict)
    return verdict
