#!/usr/bin/env python3
"""Runs the property tests of parsers for a given time, each with another seed in every round.

    fuzz.py collect FOLDER [--profile test|fuzz]   builds the test programs and lists their property tests in FOLDER/plan.json
    fuzz.py run FOLDER --seconds N [...]           runs them; needs the repository only for its fixtures (--root)

Every test inside a `proptest!` block belongs, but those of the paths in HISTORIES: a new one cannot be forgotten. `collect`
fails where a test in the source is in no program, or in two.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

# Properties of plans and states, which read no texts. `scripts/test.sh soak` is for those.
HISTORIES = [
    "crates/danlu-core/tests/core/properties.rs",
    "crates/danlu-sched/",
    "crates/danlu-server/src/listener/places/tests.rs",
    "crates/danlu-server/src/reconcile/faults.rs",
    "crates/danlu-sim/tests/",
]
BLOCK = re.compile(r"^( *)(?:proptest::)?proptest! \{$")
TEST = re.compile(r"#\[test\]\s*(?:#\[[^\n]*\]\s*)*fn (\w+)\(")
OWN_CASES = re.compile(r"\bcases: (\d+),|with_cases\((\d+)\)")
DEFAULT_CASES = 256


def fail(text):
    sys.exit(f"error: {text}")


def blocks_of(text):
    """The texts of all `proptest!` blocks of a file."""
    found, lines = [], text.split("\n")
    for number, line in enumerate(lines):
        begins = BLOCK.match(line)
        if begins:
            end = next(at for at in range(number + 1, len(lines)) if lines[at] == begins[1] + "}")
            found.append("\n".join(lines[number:end]))
    if len(found) != len(re.findall(r"\bproptest! *[{(\[]", text)):
        fail("a `proptest!` that is not written as `proptest! {` on a line of its own")
    return found


def tests_in_source(root):
    """Every test of every `proptest!` block: crate, path of its module, name, and its own number of cases or None."""
    tests = []
    gone = [history for history in HISTORIES if not (root / history).exists()]
    if gone:
        fail(f"HISTORIES names what is not there: {', '.join(gone)}")
    for path in sorted(root.glob("crates/*/**/*.rs")):
        relative = path.relative_to(root).as_posix()
        text = path.read_text()
        if "proptest! " not in text or any(relative.startswith(history) for history in HISTORIES):
            continue
        for block in blocks_of(text):
            names = TEST.findall(block)
            if not names:
                fail(f"{relative}: a `proptest!` block in which no test is found")
            own = OWN_CASES.search(block.split("#[test]")[0])
            cases = int(own[1] or own[2]) if own else None
            _, crate, kind, *rest = pathlib.PurePosixPath(relative).with_suffix("").parts
            # In `tests`, the first part names the program; a file there is its root.
            module = [part for part in (rest if kind == "src" else rest[1:]) if part not in ("lib", "main", "mod")]
            program = crate.replace("-", "_") if kind == "src" else rest[0]
            tests += [{"crate": crate, "program": program, "module": module, "name": name, "cases": cases} for name in names]
    return tests


def build(root, profile, tests):
    """The test programs that cargo built, by crate and target: no more of them than there are tests for."""
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json"]
    command += ["--profile", profile] if profile != "test" else []
    for crate in sorted({test["crate"] for test in tests}):
        command += ["--package", crate]
    command.append("--lib")
    for program in sorted({test["program"] for test in tests if not test["program"].startswith("danlu_")}):
        command += ["--test", program]
    built = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=False, text=True)
    if built.returncode:
        sys.exit(built.returncode)
    programs = {}
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
            crate = pathlib.Path(message["manifest_path"]).parent.name
            programs[crate, message["target"]["name"]] = message["executable"]
    return programs


def collect(arguments):
    root = pathlib.Path(__file__).resolve().parents[2]
    wanted = tests_in_source(root)
    programs = build(root, arguments.profile, wanted)
    listed, plan = {}, []
    for test in wanted:
        program = programs.get((test["crate"], test["program"]))
        if program and program not in listed:
            listing = subprocess.run([program, "--list", "--format=terse"], capture_output=True, check=True, text=True)
            listed[program] = [line.removesuffix(": test") for line in listing.stdout.splitlines() if line.endswith(": test")]
        shape = re.compile("".join(f"{part}::" for part in test["module"]) + rf"(\w+::)*{test['name']}")
        found = [name for name in listed.get(program, []) if shape.fullmatch(name)]
        if len(found) != 1:
            fail(f"`{test['name']}` of {test['crate']} is in its source, and {len(found)} times in its test programs: {found}")
        plan.append({"crate": test["crate"], "program": program, "test": found[0], "cases": test["cases"]})
    if len({(test["program"], test["test"]) for test in plan}) != len(wanted):
        fail(f"{len(wanted)} property tests in the source, but fewer in the test programs")
    folder = pathlib.Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for program in sorted({test["program"] for test in plan}):
        crate = next(test["crate"] for test in plan if test["program"] == program)
        name = f"{crate}-{pathlib.Path(program).name.rsplit('-', 1)[0]}"
        if arguments.profile != "test":
            shutil.copy2(program, folder / name)
        for test in plan:
            if test["program"] == program:
                test["program"] = name if arguments.profile != "test" else program
    (folder / "plan.json").write_text(json.dumps(plan, indent=1) + "\n")
    if arguments.profile != "test":
        shutil.copy2(__file__, folder / "fuzz.py")
    print(f"{len(plan)} property tests of {len({test['crate'] for test in plan})} crates, all {len(wanted)} of the source")


class Campaign:
    """Rounds of tests, in which the test that used the least CPU time so far is the next."""

    def __init__(self, arguments):
        self.folder = pathlib.Path(arguments.folder).resolve()
        self.root = pathlib.Path(arguments.root).resolve()
        if not (self.root / "crates").is_dir():
            fail(f"`{self.root}` is not the repository, which has the fixtures; name it with --root")
        self.arguments = arguments
        self.plan = json.loads((self.folder / "plan.json").read_text())
        for test in self.plan:
            test.update(cpu=0.0, rounds=0, done=0, failures=0, running=False, next=test["cases"] or arguments.first_cases)
        self.lock = threading.Lock()
        self.seed = arguments.seed
        self.end = time.monotonic() + arguments.seconds if arguments.seconds else None
        self.began = time.monotonic()
        self.failures = []

    def take(self):
        with self.lock:
            over = self.end is not None and time.monotonic() >= self.end
            open_ones = [
                test for test in self.plan
                if not test["running"] and test["failures"] < 3 and (self.end is not None or test["rounds"] < self.arguments.rounds)
            ]
            if over or not open_ones:
                return None
            test = min(open_ones, key=lambda test: test["cpu"])
            test["running"] = True
            self.seed += 1
            return test, self.seed, test["cases"] or test["next"]

    def one_round(self, test, seed, cases):
        environment = dict(
            os.environ, PROPTEST_RNG_SEED=str(seed), PROPTEST_CASES=str(cases), PROPTEST_MAX_GLOBAL_REJECTS=str(cases * 16 + 4096),
            RUST_BACKTRACE="0",
        )
        program = self.folder / test["program"]
        command = [program, "--exact", test["test"], "--test-threads=1", "--nocapture"]
        crate = self.root / "crates" / test["crate"]
        log = self.folder / "logs" / f"{test['crate']}-{test['test'].replace('::', '.')}-{seed}.txt"
        with open(log, "wb") as out:
            child = subprocess.Popen(
                command, cwd=crate if crate.is_dir() else self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (self.arguments.memory << 20,) * 2),
            )
            late = threading.Timer(self.arguments.longest, os.killpg, (child.pid, signal.SIGKILL))
            late.start()
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            late.cancel()
        ran = b"1 passed" in log.read_bytes()
        if child.returncode == 0 and ran:
            log.unlink()
        return child.returncode == 0 and ran, used.ru_utime + used.ru_stime, child.returncode, log

    def work(self):
        while taken := self.take():
            test, seed, cases = taken
            well, cpu, status, log = self.one_round(test, seed, cases)
            with self.lock:
                test["running"] = False
                test["rounds"] += 1
                test["cpu"] += cpu
                if well:
                    test["done"] += cases
                    # Rounds of ten seconds: what has not ended when the time is over is not counted.
                    if self.end is not None and cpu < 5:
                        test["next"] = min(int(cases * min(8, max(1, 10 / max(cpu, 0.01)))), 4_000_000)
                else:
                    test["failures"] += 1
                    why = "no end" if status == -signal.SIGKILL else f"exit status {status}"
                    self.failures.append(f"{test['crate']} {test['test']}, seed {seed}, {cases} cases: {why}; see {log.name}")
                    print(f"FAILED  {self.failures[-1]}", flush=True)
                self.summarise()

    def summarise(self):
        plan = sorted(self.plan, key=lambda test: (test["crate"], test["test"]))
        cpu = sum(test["cpu"] for test in plan)
        lines = [
            f"{cpu:.0f} CPU seconds ({cpu / 3600:.2f} CPU-hours) in {time.monotonic() - self.began:.0f} s, {self.arguments.processes} processes",
            f"{len(plan)} tests, {sum(test['rounds'] for test in plan)} rounds with the seeds {self.arguments.seed + 1} to {self.seed}, one each",
            f"{sum(test['done'] for test in plan)} cases in rounds that passed",
            f"{len(self.failures)} failures",
            *self.failures,
            "",
            "CPU s\trounds\tcases\tfailures\ttest",
            *(f"{test['cpu']:.0f}\t{test['rounds']}\t{test['done']}\t{test['failures']}\t{test['crate']} {test['test']}" for test in plan),
        ]
        part = self.folder / "summary.txt.part"
        part.write_text("\n".join(lines) + "\n")
        part.replace(self.folder / "summary.txt")
        return lines


def run(arguments):
    campaign = Campaign(arguments)
    (campaign.folder / "logs").mkdir(exist_ok=True)
    workers = [threading.Thread(target=campaign.work) for _ in range(arguments.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("\n".join(campaign.summarise()))
    sys.exit(1 if campaign.failures else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("folder")
    collecting.add_argument("--profile", choices=["test", "fuzz"], default="fuzz")
    collecting.set_defaults(act=collect)
    running = commands.add_parser("run")
    running.add_argument("folder")
    running.add_argument("--seconds", type=int, help="how long; without it, each test runs --rounds times")
    running.add_argument("--rounds", type=int, default=1)
    running.add_argument("--processes", type=int, default=os.cpu_count())
    running.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big") << 16, help="the first round has the next number")
    running.add_argument("--first-cases", type=int, default=DEFAULT_CASES, help="cases of a test's first round")
    running.add_argument("--longest", type=int, default=300, help="seconds after which a round counts as without end")
    running.add_argument("--memory", type=int, default=8192, help="MiB of address space that a round may take")
    running.add_argument("--root", default=".", help="the repository, for its fixtures; the current folder without it")
    running.set_defaults(act=run)
    arguments = parser.parse_args()
    arguments.act(arguments)


if __name__ == "__main__":
    main()
