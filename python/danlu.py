"""Tell Danlu how a training goes, from any Python program, with nothing to install.

Danlu puts this file on the PYTHONPATH of every rank:

    import danlu

    start = danlu.resume_path("model.pt")       # None at the first attempt
    for step in range(first, last):
        ...
        danlu.metric(step=step, loss=loss)
        danlu.progress(step, last)
        if danlu.stopping():                    # asked to make room: save, and leave
            save(danlu.checkpoint_path("model.pt"))
            danlu.checkpoint(step=step)
            sys.exit(0)

All it does is to print lines such as `::danlu progress 0.42`, so a program may as well print them itself. Where standard
output is not Danlu's to read (a notebook, a file), it sends them to the server instead. Without Danlu the lines are harmless.
"""

import atexit
import json
import os
import queue
import signal
import stat
import sys
import threading
import time
import urllib.request

__all__ = [
    "attempt",
    "checkpoint",
    "checkpoint_path",
    "metric",
    "progress",
    "rank",
    "resume_path",
    "stopping",
    "world_size",
]

# No `Event`: one that a signal sets while it is being set is never free again.
_stop = False
_listening = False


def progress(done, total=None):
    """How far the program is: a fraction between 0 and 1, or `done` of `total` steps."""
    fraction = done / total if total else done
    _say(f"progress {min(max(float(fraction), 0.0), 1.0):.6f}")


def checkpoint(step=None):
    """A checkpoint has been saved: what was done until now is not lost if the job is stopped."""
    _say("checkpoint" if step is None else f"checkpoint step={int(step)}")


def metric(step=None, **values):
    """Values for the charts: metric(step=12, loss=0.31)."""
    words = [f"{name}={float(value)!r}" for name, value in values.items()]
    if step is not None:
        words.append(f"step={int(step)}")
    _say("metric " + " ".join(words))


def rank():
    """This process among all of the job."""
    return int(os.environ.get("RANK", "0"))


def world_size():
    return int(os.environ.get("WORLD_SIZE", "1"))


def attempt():
    """1 at first, more after each preemption or failure."""
    return int(os.environ.get("DANLU_ATTEMPT", "1"))


def checkpoint_path(name=""):
    """Where to save what the next attempt is to find. The job needs a `checkpoint` in its file."""
    return os.path.join(os.environ.get("DANLU_CHECKPOINT_DIR", "checkpoint"), name)


def resume_path(name=""):
    """What an earlier attempt saved under this name; None where there is nothing."""
    folder = os.environ.get("DANLU_RESUME_DIR")
    path = os.path.join(folder, name) if folder else None
    return path if path and os.path.exists(path) else None


def stopping():
    """Whether the job has been asked to end (SIGTERM). The first call begins to listen; call it from the main thread."""
    global _listening
    if not _listening:
        before = signal.getsignal(signal.SIGTERM)

        def on_stop(number, frame):
            global _stop
            _stop = True
            if callable(before):
                before(number, frame)

        signal.signal(signal.SIGTERM, on_stop)
        _listening = True
    return _stop


def _say(text):
    line = f"::danlu {text}"
    if "DANLU_TOKEN" in os.environ and not _is_read():
        _send(line)
        return
    # One write for one line: ranks may share a pipe.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _is_read():
    """Whether standard output goes to Danlu, which reads it through a pipe; a notebook or a file does not."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):
        return False


_unsent = queue.Queue(maxsize=10000)
_sender = None


def _send(line):
    """Hands the line to the server without waiting for it: training goes on whatever becomes of a report."""
    global _sender
    if _sender is None:
        _sender = threading.Thread(target=_send_all, name="danlu", daemon=True)
        _sender.start()
        atexit.register(_send_the_rest)
    try:
        _unsent.put_nowait(line)
    except queue.Full:
        pass


def _send_all():
    while True:
        lines = [_unsent.get()]
        while not _unsent.empty() and len(lines) < 1000:
            lines.append(_unsent.get())
        body = {"rank": int(os.environ["DANLU_RANK"]), "lines": [line for line in lines if line]}
        request = urllib.request.Request(
            os.environ["DANLU_SERVER"] + "/api/v1/attempt/reports",
            json.dumps(body).encode(),
            {"Authorization": "Bearer " + os.environ["DANLU_TOKEN"], "Content-Type": "application/json"},
        )
        # A proxy of the user's is for the world outside.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        # A server that is being restarted, a worker that is only beginning.
        for pause in (0.2, 2, 0):
            try:
                opener.open(request, timeout=5).close()
                break
            except (OSError, ValueError):
                time.sleep(pause)
        if None in lines:
            return


def _send_the_rest():
    # None is the last; whoever cannot get it out in this time is not heard.
    _unsent.put(None)
    _sender.join(timeout=5)
