"""The server that a storm goes over: started, asked, killed, and looked at from outside."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request


class Answer(Exception):
    """An answer that is no success."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body[:500]}")
        self.status, self.body = status, body


AWAY = (urllib.error.URLError, ConnectionError, socket.timeout, TimeoutError, json.JSONDecodeError, OSError)


class Platform:
    def __init__(self, danlu, folder, data, flags):
        self.danlu, self.folder, self.data, self.flags = danlu, folder, data, flags
        self.process, self.starts = None, 0

    def start(self):
        log = open(self.folder / "server.log", "ab")
        # A terminal that goes away takes what is in its session along.
        self.process = subprocess.Popen(
            [self.danlu, "up", "--listen", "127.0.0.1:0", "--data", self.data, *self.flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "RUST_LOG": "info"},
            start_new_session=True,
        )
        self.starts += 1

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()

    def ensure_running(self):
        """Starts it again where it ended by itself, as a service manager would. True if it had ended."""
        if self.process.poll() is None:
            return False
        self.start()
        return True

    def ask(self, method, path, body=None, headers=None, timeout=60):
        place = json.loads((self.data / "server.json").read_text())
        token = (self.data / "token").read_text().strip()
        base = "" if path == "/readyz" else "/api/v1"
        request = urllib.request.Request(
            place["address"] + base + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json", **(headers or {})},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Answer(error.code, error.read().decode(errors="replace")) from None
        return json.loads(text) if text.strip() else None

    def wait_ready(self, limit=180):
        give_up = time.monotonic() + limit
        while True:
            try:
                return self.ask("GET", "/readyz")
            except (Answer, *AWAY) as error:
                if time.monotonic() > give_up:
                    raise AssertionError(f"not ready after {limit} s: {error}") from None
            if self.process.poll() is not None:
                self.start()
            time.sleep(0.1)

    def pages(self, path):
        cursor, separator = "", "&" if "?" in path else "?"
        while True:
            page = self.ask("GET", path + separator + "limit=1000" + cursor)
            yield from page["items"]
            if not page.get("next"):
                return
            cursor = f"&cursor={page['next']}"

    def launchers(self):
        """(worker, pid) of the launchers that live: those whose standard input lies in a run folder of ours."""
        found = []
        for marker in (self.data / "live").glob("*.*.*"):
            job, attempt, worker = marker.name.split(".")
            status = self.data / "runs" / job / f"{attempt}.{worker}" / "status.jsonl"
            try:
                pid = json.loads(status.read_text().splitlines()[-1])["launcher"]["pid"]
                lock = os.readlink(f"/proc/{pid}/fd/0")
            except (OSError, ValueError, IndexError, KeyError, TypeError):
                continue
            if lock.startswith(str(status.parent)):
                found.append((marker.name, pid))
        return found

    def nursery(self):
        for pid in pids():
            try:
                parent = int(read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[1])
            except (IndexError, ValueError):
                continue
            if parent == self.process.pid and "launch-workers" in read(f"/proc/{pid}/cmdline"):
                return pid
        return None

    def processes(self):
        """Whoever names our folder in command line, environment, folder or standard input, but this program."""
        needle, found = str(self.folder), []
        for pid in pids():
            if pid in (os.getpid(), os.getppid()):
                continue
            told = [read(f"/proc/{pid}/cmdline"), read(f"/proc/{pid}/environ"), link(pid, "cwd"), link(pid, "fd/0")]
            if any(needle in text for text in told) and " Z " not in read(f"/proc/{pid}/stat").rsplit(")", 1)[-1][:3]:
                found.append(pid)
        return found


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def link(pid, name):
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False
