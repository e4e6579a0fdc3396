#!/usr/bin/env python3
"""Holds the digits examples to their word: `python check.py [digits|digits-stdlib|digits-torch]`.

Starts ranks by hand with the environment a job gives them and compares: four ranks must train exactly as one does with
the same global batch, two that resume from their checkpoint must end where the one ends, and TensorBoard files are there.
Runs under the Python that starts it, so call it with one that has the example's packages.
"""

import filecmp
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Sums of float32 in another order differ in the last digits; a wrong average differs in the first.
TOLERANCE = 1e-4


def main():
    example = sys.argv[1] if len(sys.argv) > 1 else "digits"
    assert filecmp.cmp(f"{HERE}/digits/events.py", f"{HERE}/digits-stdlib/events.py", shallow=False), (
        "the two copies of events.py differ: each example is uploaded alone, so keep them equal"
    )
    with tempfile.TemporaryDirectory() as scratch:
        alone = timed("1 rank", lambda: train(example, 1, f"{scratch}/alone"))
        half = len(losses(alone)) // 2

        checkpoint = {"DANLU_CHECKPOINT_DIR": f"{scratch}/checkpoint"}
        stopped = [f"--epochs={half}", "--expect=0"]
        first = timed("4 ranks, first half", lambda: train(example, 4, f"{scratch}/first", stopped, checkpoint))
        compare("4 ranks against 1", losses(alone)[:half], losses(first))

        resume = {"DANLU_RESUME_DIR": f"{scratch}/checkpoint"}
        second = timed("2 ranks, second half", lambda: train(example, 2, f"{scratch}/second", [], resume))
        compare("2 resumed ranks against 1", losses(alone)[half:], losses(second))

        if os.path.exists(f"{HERE}/{example}/events.py"):
            files = os.listdir(f"{scratch}/first")
            assert len(files) == 1 and files[0].startswith("events.out.tfevents."), files
    print(f"{example}: all well; {re.search('final accuracy .*', second)[0]}")


def train(example, ranks, output, options=(), environment=()):
    port = free_port()
    processes = []
    for rank in range(ranks):
        variables = {
            "RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "DANLU_OUTPUT_DIR": output,
            "PYTHONPATH": f"{HERE}/../python", **dict(environment),
        }
        processes.append(
            subprocess.Popen(
                [sys.executable, "train.py", *options],
                cwd=f"{HERE}/{example}",
                env={**os.environ, **{name: str(value) for name, value in variables.items()}},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
        )
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    for rank, process in enumerate(processes):
        if process.returncode:
            sys.exit(f"rank {rank} of {ranks} ended with {process.returncode}:\n{outputs[rank]}")
    return outputs[0]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def losses(output):
    return [float(loss) for loss in re.findall(r"::danlu metric loss=([0-9.]+)", output)]


def compare(what, expected, found):
    assert len(expected) == len(found) > 0, f"{what}: {len(expected)} and {len(found)} losses"
    worst = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(expected, found))
    print(f"{what}: {len(found)} losses, largest relative difference {worst:.1e}")
    assert worst < TOLERANCE, f"{what}: {expected} and {found}"


def timed(what, action):
    began = time.monotonic()
    result = action()
    inside = re.search(r"in ([0-9.]+) s", result)
    print(f"{what}: {time.monotonic() - began:.1f} s, of which training {inside[1] if inside else '?'} s", flush=True)
    return result


if __name__ == "__main__":
    main()
