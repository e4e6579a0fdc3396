#!/usr/bin/env python3
"""A launcher that keeps the contract of `danlu_core::launch` in the plainest way, to test the engine by itself.

Without cgroups, sessions and staging; else it does what a launcher does: status before anything, gang, ranks with logs,
first failure, stop with grace, no process left, the end as its last word.

FAKE_LAUNCHER in its environment makes it misbehave: `die` before the first status.
"""
import datetime, json, os, signal, socket, subprocess, sys, threading, time

run = sys.argv[1]
if os.environ.get("FAKE_LAUNCHER") == "die":
    print("the fake launcher was told to die", file=sys.stderr)
    sys.exit(3)

with open(os.path.join(run, "launch.json")) as file:
    launch = json.load(file)
# It looks for orders all the time, so there is nothing to do when it is woken. (An `Event` set here would deadlock with
# a main thread that is just waiting for it: its lock is not reentrant.)
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGHUP, signal.SIG_IGN)


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def put(path, value):
    with open(path + ".draft", "w") as draft:
        json.dump(value, draft)
    os.rename(path + ".draft", path)


def tell(phase):
    with open("/proc/self/stat") as stat:
        ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
    launcher = {"pid": os.getpid(), "start_ticks": ticks}
    status = {"worker": launch["worker"], "launcher": launcher, "phase": phase}
    with open(os.path.join(run, "status.jsonl"), "a") as file:
        file.write(json.dumps(status) + "\n")
    folder = os.open(os.path.dirname(launch["folders"]["hints"]), os.O_RDONLY)
    try:
        hints = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = os.path.basename(launch["folders"]["hints"])
        hints.sendto(launch["worker"].encode(), f"/proc/self/fd/{folder}/{name}")
    except OSError:
        pass  # hints may be lost
    os.close(folder)


def order():
    try:
        with open(os.path.join(run, "stop.json")) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def copy(stream, log, letter):
    for line in stream:
        log.write(f"{now()} {letter} ".encode() + line.rstrip(b"\n") + b"\n")
        log.flush()


def environment(rank):
    env = dict(os.environ)
    indices = lambda kind: ",".join(str(d["index"]) for d in launch["devices"] if d["kind"] == kind)
    env.update(CUDA_VISIBLE_DEVICES=indices("nvidia"), ASCEND_RT_VISIBLE_DEVICES=indices("ascend"))
    env.update(RANK=str(rank["rank"]), LOCAL_RANK=str(rank["local_rank"]), WORLD_SIZE=str(launch["world_size"]))
    env.update(launch["env"])
    env.update(DANLU_RUN_DIR=run, DANLU_JOB_ID=launch["worker"].split(".")[0])
    env.update(DANLU_OUTPUT_DIR=launch["folders"]["output"])
    return env


def leftovers():
    mark = f"DANLU_RUN_DIR={run}".encode()
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    yield int(entry)
        except (OSError, ValueError):
            pass


def kill_all():
    while found := list(leftovers()):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for _, process in ranks:
            process.poll()


ranks, copiers, since = [], [], None


def end(exit):
    kill_all()
    for copier in copiers:
        copier.join()
    tell({"ended": {"running_since": since, "at": now(), "exit": exit}})
    sys.exit(0)


tell("preparing")
gang = launch["folders"]["gang"]
os.makedirs(gang, exist_ok=True)
os.makedirs(launch["folders"]["output"], exist_ok=True)
os.makedirs(os.path.join(run, "work"), exist_ok=True)
put(os.path.join(gang, f"worker-{launch['worker'].split('.')[2]}.json"), {"address": launch["address"], "port": 1})
while not all(os.path.exists(os.path.join(gang, f"worker-{n}.json")) for n in range(launch["gang"]["workers"])):
    if order():
        end("stopped")
    time.sleep(0.005)
if order():
    end("stopped")

for rank in launch["ranks"]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        ["/bin/sh", "-c", launch["command"]], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe,
        cwd=os.path.join(run, "work"), env=environment(rank), start_new_session=True,
    )
    log = open(os.path.join(run, f"rank-{rank['rank']}.log"), "ab")
    for stream, letter in [(process.stdout, "o"), (process.stderr, "e")]:
        copiers.append(threading.Thread(target=copy, args=(stream, log, letter)))
        copiers[-1].start()
    ranks.append((rank["rank"], process))
since = now()
tell({"running": {"since": since, "ranks": [{"rank": rank, "pid": process.pid} for rank, process in ranks]}})

kill_at = None
while True:
    stop = order()
    if stop and kill_at is None:
        amount, unit = stop["grace"].rstrip("msh"), stop["grace"].lstrip("0123456789.")
        kill_at = time.monotonic() + float(amount) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]
        for _, process in ranks:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
    ends = [(rank, process.poll()) for rank, process in ranks]
    if stop and (all(code is not None for _, code in ends) or time.monotonic() > kill_at):
        end("stopped")
    for rank, code in ends:
        if code and not stop:
            how = {"code": code} if code > 0 else {"signal": -code}
            end({"failed": {"cause": "exit", "rank": rank, "exit": how}})
    if all(code == 0 for _, code in ends) and not stop:
        end("succeeded")
    time.sleep(0.005)
