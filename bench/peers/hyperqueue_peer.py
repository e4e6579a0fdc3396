#!/usr/bin/env python3
"""HyperQueue doing what we measure of ourselves: server and one worker in this process, no journal.

Prints `name<TAB>value<TAB>unit` lines. A last task that needs all others notes the time: the library's own waiting
looks only once a second. Its own program, `hq`, with server and worker apart, is faster: see hyperqueue_native.sh.
"""

import os
import sys
import tempfile
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

JOBS = 2000
ROUNDS = 20
# Claimed, not there: a task of `true` needs no core of its own, and as many as Slurm is given are.
CORES = 64


def main():
    talk = os.dup(1)
    os.dup2(2, 1)  # The library's server prints its own table on standard output.
    with tempfile.TemporaryDirectory() as folder, LocalCluster() as cluster, os.fdopen(talk, "w") as figures:
        cluster.start_worker(WorkerConfig(cores=CORES))
        client = cluster.client()
        run(client, folder, 50)
        print(f"throughput\t{JOBS / run(client, folder, JOBS):.0f}\tjobs/s", file=figures)
        latencies = sorted(run(client, folder, 0) for _ in range(ROUNDS))
        print(f"latency\t{latencies[ROUNDS // 2] * 1000:.1f}\tms", file=figures)


def run(client, folder, count):
    """Seconds from submission until the program that waits for `count` others has run."""
    done = os.path.join(folder, "done")
    job = Job(folder)
    tasks = [job.program(["true"], stdout=None, stderr=None) for _ in range(count)]
    job.program(["touch", done], stdout=None, stderr=None, deps=tasks)
    began = time.time()
    submitted = client.submit(job)
    while not os.path.exists(done):
        time.sleep(0.001)
    took = os.stat(done).st_mtime - began
    os.unlink(done)
    failed = client.get_failed_tasks(submitted)
    if failed:
        sys.exit(f"error: {len(failed)} tasks failed")
    return took


if __name__ == "__main__":
    main()
