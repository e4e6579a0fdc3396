#!/usr/bin/env python3
"""Crash storms: hundreds of jobs while the platform is killed, frozen, cut off and starved of room.

usage: storm.py --danlu DANLU --witness WITNESS --storm NAME [--jobs 240] [--seed N] [--postgres FOLDER] [--tamper] [--keep]

Everything that is counted is told by witnesses outside Danlu (witness.rs) and held against what the platform says afterwards
(verify.py). Ends with 1 if anything was lost, doubled or left over, and then leaves its folder behind.
"""

import argparse
import json
import os
import pathlib
import random as randomness
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import faults
import shapes
from platform_under_test import AWAY, Answer, Platform
from verify import A_MOMENT_NS, MUST_BE_NONE, WITHOUT_WITNESS, verify

MOST_LIVE = 16
# Room for what the jobs of a storm print, and little more.
SMALL_DISK = "192m"


class Site:
    """What the storm itself knows: what it submitted, stopped and killed."""

    def __init__(self, folder, witness):
        self.folder, self.marks, self.witness = folder, folder / "marks", witness
        (self.marks / "locks").mkdir(parents=True)
        self.submitted, self.stopped = {}, set()
        # When each was killed first, by the clock of the marks.
        self.killed_launchers = {}
        # When each that had been frozen went on.
        self.frozen_until = {}
        self.everything_killed, self.attempts_without_logs = [], set()
        self.postgres, self.trouble = None, []
        self.is_over = threading.Event()

    def note_killed(self, worker):
        self.killed_launchers.setdefault(worker, time.time_ns())


def until_answered(site, ask, limit=400):
    """A client that does not give up: what is refused for a while is asked again."""
    give_up = time.monotonic() + limit
    while True:
        try:
            return ask()
        except Answer as error:
            # 503: cannot now. 507: no room.
            if error.status not in (503, 507) or time.monotonic() > give_up:
                raise
        except AWAY as error:
            if time.monotonic() > give_up:
                raise AssertionError(f"no answer for {limit} s: {error}") from None
        time.sleep(0.1)


def submit_all(platform, site, jobs, stream):
    for index in range(jobs):
        job, name, _, expected = shapes.spec(index, site.witness, site.marks)
        headers = {"Idempotency-Key": f"storm-{index}"}
        answer = until_answered(site, lambda: platform.ask("POST", "/jobs", job, headers))
        site.submitted[answer["id"]] = (job["name"], expected)
        if expected == "stopped":
            start(site, stop_later, platform, site, answer["id"], stream.uniform(0, 2))
        live = "/jobs/counts?state=queued,starting,running,stopping"
        while sum(until_answered(site, lambda: platform.ask("GET", live))["by_state"].values()) >= MOST_LIVE:
            time.sleep(0.1)


def stop_later(platform, site, number, after):
    """A client that stops a job some time after its first rank has begun."""
    while not (site.marks / f"{number}.0").exists() and not site.is_over.is_set():
        time.sleep(0.1)
    time.sleep(after)
    site.stopped.add(number)
    try:
        until_answered(site, lambda: platform.ask("POST", f"/jobs/{number}/stop", {}))
    except Answer as error:
        if error.status != 409:
            raise


def start(site, work, *arguments):
    def guarded():
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001, told at the end
            site.trouble.append(f"{work.__name__}: {error!r}")

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread


def rage(platform, site, storm, random, submitting, done):
    kinds, (least, most) = faults.STORMS[storm]
    record = open(site.folder / "faults.jsonl", "w")
    while submitting.is_alive():
        time.sleep(random.uniform(least, most))
        kind = random.choice(kinds)
        found = kind(platform, random, site)
        for name, value in found.items():
            if isinstance(value, int):
                done[name] = done.get(name, 0) + value
        if platform.ensure_running():
            done["ended_by_itself"] = done.get("ended_by_itself", 0) + 1
        print(json.dumps({"at": time.time(), "fault": kind.__name__, **found}), file=record, flush=True)


def wait_for_end(platform, site, limit=600):
    give_up = time.monotonic() + limit
    while time.monotonic() < give_up:
        platform.ensure_running()
        live = until_answered(site, lambda: platform.ask("GET", "/jobs/counts?state=held,queued,starting,running,stopping"))
        if sum(live["by_state"].values()) == 0:
            break
        time.sleep(0.5)
    # Ended jobs are let go of a moment later.
    while time.monotonic() < give_up and any((platform.data / "live").glob("*")):
        time.sleep(0.2)
    # All devices must be there to be had again.
    job = {"command": "true", "cpus": 0.01, "workers": 4, "devices": shapes.npu(4), "name": WITHOUT_WITNESS}
    number = until_answered(site, lambda: platform.ask("POST", "/jobs", job, {"Idempotency-Key": WITHOUT_WITNESS}))["id"]
    site.submitted[number] = (job["name"], "succeeded")
    while time.monotonic() < give_up and platform.ask("GET", f"/jobs/{number}")["state"] != "ended":
        time.sleep(0.2)
    while time.monotonic() < give_up and any((platform.data / "live").glob("*")):
        time.sleep(0.2)


def tamper(platform, site):
    """What a fault of the platform would leave behind, made by hand: a check that misses one of these is worth nothing."""
    ended = {name.rsplit("-", 1)[0]: number for number, (name, _) in site.submitted.items()}
    # Of each kind another one: there are at least two.
    first = {name.rsplit("-", 1)[0]: number for number, (name, _) in sorted(site.submitted.items(), reverse=True)}

    def log(number):
        return platform.data / "runs" / str(number) / "1.0" / "rank-0.log"

    # A line that is not there, one that is there twice, and the log of another job.
    lines = log(ended["long"]).read_bytes().splitlines(keepends=True)
    log(ended["long"]).write_bytes(b"".join(lines[:7] + lines[8:]))
    lines = log(ended["fails"]).read_bytes().splitlines(keepends=True)
    log(ended["fails"]).write_bytes(b"".join(lines[:4] + lines[3:]))
    shutil.copy(log(ended["short"]), log(ended["crashes"]))
    # A job that is gone, one that nobody submitted, and one that is there twice.
    platform.ask("DELETE", f"/jobs/{ended['daemon']}")
    twin = {"command": "true", "cpus": 0.01, "name": site.submitted[ended["burst"]][0]}
    number = platform.ask("POST", "/jobs", twin)["id"]
    # A rank that was started twice, while another held its device; one that ended badly and is told as succeeded, and the reverse;
    # a step that was saved and not resumed from.
    gang, other = (site.marks / f"{ended[name]}.0" for name in ("gang", "two_workers"))
    start = next(line for line in gang.read_text().splitlines() if line.startswith("start"))
    with gang.open("a") as marks:
        marks.write(start + "\n")
    fields = start.split("\t")
    with other.open("a") as marks:
        marks.write("\t".join(["start", fields[1], "2", *fields[3:]]) + "\n")
        marks.write("\t".join(["beat", str(int(fields[1]) + 1), "2", "0"]) + "\n")
    short = site.marks / f"{ended['short']}.0"
    short.write_text(short.read_text().replace("\t0\t5\n", "\t1\t5\n"))
    steps = site.marks / f"{ended['checkpoints']}.0"
    steps.write_text(steps.read_text().replace("\t1\t4\n", "\t1\t9\n"))
    for number_of_fails in (ended["fails"], first["fails"]):
        fails = site.marks / f"{number_of_fails}.0"
        fails.write_text(fails.read_text().replace("\t3\t10\n", "\t0\t10\n"))
    # Its launcher is said to have been killed, but so late that it should have told the end.
    over = max(int(line.split("\t")[1]) for line in fails.read_text().splitlines())
    site.killed_launchers[f"{first['fails']}.1.0"] = over + 2 * A_MOMENT_NS
    # Something of a job that runs on.
    subprocess.Popen(["sleep", "600"], cwd=platform.data / "runs", start_new_session=True)
    while platform.ask("GET", f"/jobs/{number}")["state"] != "ended":
        time.sleep(0.1)
    found_once = [
        "lines_lost", "lines_doubled", "lines_misplaced", "jobs_lost", "jobs_doubled", "ran_twice", "device_twice",
        "told_succeeded_but_did_not", "checkpoints_lost", "orphans",
    ]
    return {**dict.fromkeys(found_once, 1), "finished_but_told_otherwise": 2}


def main():
    # As after Ctrl-C: what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser()
    parser.add_argument("--danlu", required=True, type=pathlib.Path)
    parser.add_argument("--witness", required=True, type=pathlib.Path)
    parser.add_argument("--storm", required=True, choices=sorted(faults.STORMS))
    parser.add_argument("--jobs", type=int, default=240)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--postgres", help="the folder of PostgreSQL's programs")
    parser.add_argument("--tamper", action="store_true", help="falsify what is left, and fail unless the check finds all of it")
    parser.add_argument("--keep", action="store_true", help="leave the folder also where all is well")
    given = parser.parse_args()
    print(f"storm {given.storm}: {given.jobs} jobs, --seed {given.seed}", file=sys.stderr)
    random = randomness.Random(given.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"danlu-storm-{given.storm}-"))
    # PostgreSQL's user has to reach its own folder below.
    folder.chmod(0o755)
    site = Site(folder, given.witness.resolve())
    data = folder / "data"
    data.mkdir()
    flags = ["--simulate", "4x4:ascend:910B3"]
    mounted = given.storm == "disk"
    if mounted:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "danlu-storm", data], check=True)
    if given.storm == "postgres":
        # Beside our folder: its processes are none of the platform's.
        site.postgres = faults.Postgres(given.postgres, folder.with_name(folder.name.replace("storm", "database")))
        flags += ["--database", site.postgres.url()]
    platform = Platform(given.danlu.resolve(), folder, data, flags)
    done, began, bad = {}, time.monotonic(), True
    try:
        platform.start()
        platform.wait_ready()
        submitting = start(site, submit_all, platform, site, given.jobs, randomness.Random(given.seed + 1))
        rage(platform, site, given.storm, random, submitting, done)
        site.is_over.set()
        wait_for_end(platform, site)
        falsified = tamper(platform, site) if given.tamper else {}
        verdict = verify(platform, site)
        found = {kind: verdict.counts[kind] for kind in MUST_BE_NONE}
        report = {
            "storm": given.storm, "seed": given.seed, "seconds": round(time.monotonic() - began), "faults": done,
            "server_starts": platform.starts, **{k: v for k, v in verdict.counts.items() if k not in found}, **found,
        }
        print(json.dumps(report))
        for kind in [*MUST_BE_NONE, "errors_logged"]:
            for text in verdict.told[kind][:5]:
                print(f"{kind}: {text}", file=sys.stderr)
        for text in site.trouble:
            print(f"trouble: {text}", file=sys.stderr)
        others = {kind for kind, count in found.items() if count and kind not in falsified}
        is_found = sum(min(found[kind], count) for kind, count in falsified.items())
        bad = bool(site.trouble) or bool(others) or is_found < sum(falsified.values())
        if falsified:
            print(f"falsified {sum(falsified.values())} things, of which {is_found} were found", file=sys.stderr)
    finally:
        if platform.process and platform.process.poll() is None:
            platform.kill()
        while found := platform.processes():
            for pid in found:
                faults.send(pid, 9)
        if site.postgres is not None:
            site.postgres.stop()
            shutil.rmtree(site.postgres.folder)
        if bad or given.keep:
            print(f"what it left is in {folder}", file=sys.stderr)
        else:
            if mounted:
                subprocess.run(["umount", data], check=True)
            shutil.rmtree(folder)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
