"""What storms do to the platform. Each function does one fault and returns what it did, for the record."""

import os
import signal
import sqlite3
import subprocess
import time

from platform_under_test import link, send


def server(platform, random, site):
    """kill -9; half the time again before the new one serves."""
    platform.kill()
    times = 1
    platform.start()
    while random.random() < 0.3:
        time.sleep(random.uniform(0, 0.4))
        platform.kill()
        platform.start()
        times += 1
    return {"server_kills": times}


def graceful(platform, random, site):
    """SIGTERM, which lets jobs run; the next server is at another port."""
    platform.kill(signal.SIGTERM)
    time.sleep(random.uniform(0, 1))
    platform.start()
    return {"terminations": 1}


def launcher(platform, random, site):
    found = platform.launchers()
    if not found:
        return {}
    worker, pid = random.choice(found)
    # Noted before it is done: a kill that comes later than it was noted exempts less.
    site.note_killed(worker)
    return {"launcher_kills": int(send(pid, signal.SIGKILL)), "worker": worker}


def nursery(platform, random, site):
    pid = platform.nursery()
    return {"nursery_kills": int(pid is not None and send(pid, signal.SIGKILL))}


def freeze(platform, random, site):
    """SIGSTOP, and SIGCONT after a while: sometimes longer than the platform waits."""
    what = random.choice(["server", "launcher", "launcher", "nursery"])
    if what == "server":
        worker, pid = None, platform.process.pid
    elif what == "nursery":
        worker, pid = None, platform.nursery()
    else:
        worker, pid = random.choice(platform.launchers() or [(None, None)])
    if pid is None or not send(pid, signal.SIGSTOP):
        return {}
    longest = 14 if random.random() < 0.1 else 3
    time.sleep(random.uniform(0.2, longest))
    if worker is not None:
        site.frozen_until[worker] = time.time_ns()
    # It may have been killed and replaced meanwhile, and another have its number.
    if worker is None or link(pid, "fd/0").startswith(str(platform.data)):
        send(pid, signal.SIGCONT)
    elif worker is not None:
        # The server took it for hanging and killed it, as it should.
        site.note_killed(worker)
    return {f"{what}_freezes": 1, "worker": worker}


def power(platform, random, site):
    """Everything at once: server, nursery, launchers, ranks."""
    for worker, _ in platform.launchers():
        site.note_killed(worker)
    site.everything_killed.append(time.time_ns())
    platform.process.send_signal(signal.SIGKILL)
    while found := platform.processes():
        for pid in found:
            send(pid, signal.SIGKILL)
        platform.process.poll()
    platform.process.wait()
    platform.start()
    return {"power_cuts": 1}


def full_disk(platform, random, site):
    """Fills the file system of the data folder for a while; half the time the server is killed meanwhile."""
    ballast = platform.data / "ballast"
    kills = 0
    with open(ballast, "wb", buffering=0) as file:
        block = bytes(1 << 16)
        end = time.monotonic() + random.uniform(1, 6)
        kill_at = time.monotonic() + random.uniform(0, 3) if random.random() < 0.5 else None
        while time.monotonic() < end:
            try:
                while True:
                    file.write(block)
            except OSError:
                pass
            if kill_at is not None and time.monotonic() > kill_at:
                platform.kill()
                platform.start()
                kills, kill_at = kills + 1, None
            # Whoever gives up a reserve finds it taken.
            time.sleep(0.05)
    ballast.unlink()
    return {"full_disks": 1, "server_kills": kills}


def frozen_write_lock(platform, random, site):
    """Somebody else's BEGIN IMMEDIATE on the database, held beyond its time-out now and then."""
    connection = sqlite3.connect(platform.data / "danlu.db", timeout=30, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(random.uniform(8, 20) if random.random() < 0.3 else random.uniform(0.2, 4))
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return {"error": str(error)}
    finally:
        connection.close()
    return {"write_locks": 1}


class Postgres:
    """A PostgreSQL server of our own, crashed at will."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.port = 5432  # Only names the socket: it listens nowhere else.
        self.as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"] if os.getuid() == 0 else []
        folder.mkdir()
        folder.chmod(0o777)
        self.run("initdb", "--auth=trust", "--username=danlu", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "-D", folder / "data")
        self.start()
        self.run("createdb", "-h", folder, "-U", "danlu", "storm")

    def run(self, program, *arguments, check=True):
        command = [*self.as_user, os.path.join(self.programs, program), *map(str, arguments)]
        return subprocess.run(command, cwd="/", check=check, capture_output=True, text=True)

    def start(self):
        options = f"-k {self.folder} -c listen_addresses= -c max_connections=100"
        # Into a file: a pipe would be held open by the server.
        command = [*self.as_user, os.path.join(self.programs, "pg_ctl"), "start", "-w", "-t", "120", "-D", str(self.folder / "data")]
        command += ["-l", str(self.folder / "log"), "-o", options]
        subprocess.run(command, cwd="/", check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        self.run("pg_ctl", "stop", "-m", "immediate", "-w", "-D", self.folder / "data", check=False)

    def url(self):
        return f"postgres://danlu@{str(self.folder).replace('/', '%2F')}:{self.port}/storm"


def database_crash(platform, random, site):
    site.postgres.stop()
    time.sleep(random.uniform(8, 20) if random.random() < 0.2 else random.uniform(0, 3))
    site.postgres.start()
    return {"database_crashes": 1}


def cut(platform, random, site):
    """All connections to the database, that of the lock too."""
    query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'storm' AND pid <> pg_backend_pid()"
    done = site.postgres.run("psql", "-h", site.postgres.folder, "-U", "danlu", "-At", "-c", query, "storm", check=False)
    return {"cuts": int(done.returncode == 0)}


# The faults of each storm, as often as they stand here, and how long to wait between two, in seconds.
STORMS = {
    "server": ([server], (0.2, 3)),
    "launchers": ([launcher, launcher, launcher, nursery], (0.1, 2)),
    "frozen": ([freeze, freeze, freeze, server, launcher, nursery], (0.1, 1.5)),
    "power": ([power], (10, 25)),
    "graceful": ([graceful], (4, 15)),
    "disk": ([full_disk], (2, 6)),
    "locked": ([frozen_write_lock, frozen_write_lock, frozen_write_lock, server], (0.5, 4)),
    "postgres": ([server, server, database_crash, cut, cut], (0.3, 3)),
}
