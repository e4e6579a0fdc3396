"""Makes a kept data folder: what a server of this version leaves on the disk when it is killed.

    python3 make.py PATH_OF_DANLU FOLDER [DATABASE_URL]

FOLDER gets the files of the data folder as they are, with `@DATA@` in place of its path; the database as SQL text
(`database.sql`); the secrets that people hold (`held.json`); what the API said just before the end (`said.json`); and
what the launcher of the running job wrote after it (`later.json`). Never made again for a version that is gone: the
folder is what that version wrote. A later version that stores something new gets a folder of its own.
"""

import atexit
import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

DANLU, KEPT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DATABASE = sys.argv[3] if len(sys.argv) > 3 else None
HERE = os.path.dirname(os.path.abspath(__file__))
PASSWORD = "correct horse battery"
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ada@laptop"
FOLDER = tempfile.mkdtemp(prefix="danlu-kept-")
os.chmod(FOLDER, 0o755)
DATA = os.path.join(FOLDER, "data")
held = {"password": PASSWORD}


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(Stay)


def send(method, address, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json", **headers}, method=method)
    try:
        answer = opener.open(request)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, answer.headers, answer.read().decode()


def ask(who, method, path, body=None):
    headers = {"Authorization": f"Bearer {held['tokens'][who]}"} if who else {}
    status, _, text = send(method, f"{address}/api/v1{path}", body, **headers)
    assert status < 300, (method, path, status, text)
    return json.loads(text) if text else None


def start(*flags):
    global address
    database = ["--database", DATABASE] if DATABASE else []
    log = open(os.path.join(FOLDER, "log"), "a")
    server = subprocess.Popen(
        [DANLU, "up", "--listen", "127.0.0.1:0", "--data", DATA, "--simulate", "1x8:ascend:910B3",
         "--registration", "open", *database, *flags],
        stdout=log, stderr=log)
    atexit.register(server.kill)
    while True:
        assert server.poll() is None, open(log.name).read()
        try:
            found = json.load(open(os.path.join(DATA, "server.json")))
            if found["pid"] == server.pid:
                address = found["address"]
                if send("GET", f"{address}/readyz")[0] == 200:
                    break
        except (FileNotFoundError, ValueError, urllib.error.URLError):
            pass
        time.sleep(0.05)
    held.setdefault("tokens", {})["admin"] = open(os.path.join(DATA, "token")).read().strip()
    return server


def job(who, **spec):
    return ask(who, "POST", "/jobs", {"cpus": "10m", **spec})["id"]


def wait(number, *states):
    while True:
        view = ask("admin", "GET", f"/jobs/{number}")
        if view["state"] in states:
            return view
        time.sleep(0.05)


def sign_in(name, **more):
    status, headers, text = send("POST", f"{address}/api/v1/session", {"name": name, "password": PASSWORD, **more})
    assert status == 200, text
    held["tokens"][name] = json.loads(text)["secret"]
    return headers


def code(secret, ahead=0):
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    tag = hmac.new(key, struct.pack(">Q", int(time.time()) // 30 + ahead), hashlib.sha1).digest()
    at = tag[19] & 15
    return f"{(struct.unpack('>I', tag[at:at + 4])[0] & 0x7FFFFFFF) % 1000000:06}"


def come_by_provider():
    _, begun, _ = send("GET", f"{address}/api/v1/oidc/start")
    _, there, _ = send("GET", begun["location"])
    status, _, text = send("GET", there["location"], Cookie=begun["set-cookie"].split(";")[0])
    assert status == 303, text


provider = subprocess.Popen(
    [sys.executable, os.path.join(HERE, "../people/provider.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
issuer = f"http://127.0.0.1:{provider.stdout.readline().strip()}"
with open(os.path.join(FOLDER, "client-secret"), "w") as file:
    file.write("a shared secret\n")
with open(os.path.join(FOLDER, "oidc.yaml"), "w") as file:
    json.dump({"issuer": issuer, "client_id": "danlu", "client_secret_file": file.name.replace("oidc.yaml", "client-secret"),
               "groups": {"vision-team": [{"workspace": "vision", "role": "owner"}]}}, file)

# People, and what is theirs.
server = start("--oidc", os.path.join(FOLDER, "oidc.yaml"))
for name, rules in {
    "lab": {"guaranteed": {"ascend": 4}, "limit": {"ascend": 8}, "approve_above": {"ascend": 4}},
    "vision": {"shared_folder": "/srv/vision", "default_priority": 3},
    "gone": {},
}.items():
    ask("admin", "PUT", f"/workspaces/{name}", rules)
ask("admin", "PUT", "/sharing", {**ask("admin", "GET", "/sharing"), "minimum_run_time": "10m"})
for name in ["ada", "otto", "vera", "mfa", "left", "away"]:
    ask("admin", "POST", "/accounts", {"name": name, "password": PASSWORD, "display_name": f"{name} 丹"})
for name, role in {"ada": "member", "otto": "owner", "vera": "viewer", "mfa": "member", "left": "member"}.items():
    ask("admin", "PUT", f"/workspaces/lab/members/{name}", {"role": role})
held["cookies"] = [cookie.split(";")[0] for cookie in sign_in("ada").get_all("set-cookie") or []]
sign_in("otto")
sign_in("vera")
for name, scope in {"script": "jobs", "dashboard": "read", "all": "all"}.items():
    made = ask("ada", "POST", "/tokens", {"name": name, "scope": scope})
    held["tokens"][f"ada {name}"] = made["secret"]
made = ask("ada", "POST", "/tokens", {"name": "for a year", "scope": "all", "lasts": "365d"})
held["tokens"]["ada rotated"] = ask("ada", "POST", f"/accounts/ada/tokens/{made['token']['id']}/rotation")["secret"]
ask("ada", "POST", "/accounts/ada/ssh_keys", {"key": SSH_KEY})
held["s3"] = ask("ada", "POST", "/accounts/ada/s3_keys", {"name": "bucket"})
held["sign_in_link"] = ask("otto", "POST", "/sign_in_link")["secret"]
held["password_link"] = ask("admin", "POST", "/accounts/vera/password_link")["password_link"]
held["invitation"] = ask("otto", "POST", "/workspaces/lab/invitations", {"role": "viewer", "lasts": "30d"})["secret"]
used = ask("otto", "POST", "/workspaces/lab/invitations", {"role": "member"})["secret"]
ask(None, "POST", "/registration", {"name": "invited", "password": PASSWORD, "invitation": used})
ask(None, "POST", "/registration", {"name": "asks", "password": PASSWORD, "email": "asks@example.org", "workspace": "lab"})
sign_in("mfa")
held["totp"] = ask("mfa", "POST", "/accounts/mfa/totp", {"password": PASSWORD})["secret"]
held["recovery"] = ask("mfa", "POST", "/accounts/mfa/totp/confirmation", {"code": code(held["totp"])})["codes"]
sign_in("mfa", code=held["recovery"].pop())
send("POST", f"{issuer}/person", {"sub": "7", "preferred_username": "Nina.L@lab.example", "name": "Nina", "groups": ["vision-team"]})
come_by_provider()
ask("otto", "PUT", "/workspaces/lab/secrets/wandb", {"value": "what only the job sees"})
ask("admin", "PATCH", "/accounts/away", {"standing": "disabled"})
ask("admin", "DELETE", "/accounts/left")
ask("admin", "DELETE", "/workspaces/gone")
link = ask("admin", "POST", "/sign_in_link")["secret"]
ask(None, "POST", "/session", {"link": link})

# An account with a number of its own, where this machine allows it.
server.send_signal(signal.SIGTERM)
server.wait()
if os.geteuid() == 0:
    server = start("--unix-users", "200000-200099")
    wait(job("ada script", command="true", workspace="lab"), "ended")
    server.send_signal(signal.SIGTERM)
    server.wait()

# Jobs that have ended, that wait and that run.
server = start()
done = wait(job("ada script", command="echo first; echo more >&2", name="done", labels={"project": "ocr"}, workspace="lab"), "ended")
failed = wait(job("ada script", command="echo no; exit 3", name="failed", workspace="lab"), "ended")
stopped = job("ada script", command="sleep 1000", name="stopped", workspace="lab", grace="0s")
wait(stopped, "running")
ask("ada script", "POST", f"/jobs/{stopped}/stop", {})
wait(stopped, "ended")
go = os.path.join(FOLDER, "go")
runs = job("ada script", command=f"echo before; while ! [ -e {go} ]; do sleep 0.1; done; echo after",
           name="runs", workspace="lab", devices={"kind": "ascend", "count": 4}, secrets={"WANDB_API_KEY": "wandb"})
wait(runs, "running")
ask("otto", "POST", "/tokens", {"name": "otto's", "scope": "read"})
waits = job("ada script", command="echo in turn", name="waits", devices={"kind": "ascend", "count": 8}, preemptible=True)
held_job = job("ada script", command="true", name="held", devices={"kind": "ascend", "count": 8}, preemptible=True)
ask("ada script", "POST", f"/jobs/{held_job}/hold")
asks_approval = job("ada script", command="true", name="asks", workspace="lab", devices={"kind": "ascend", "count": 8})
held["jobs"] = {"done": done["id"], "failed": failed["id"], "stopped": stopped, "runs": runs, "waits": waits,
                "held": held_job, "asks": asks_approval}
time.sleep(2)
said = {}
for path in ["/accounts", "/workspaces", "/sharing", "/jobs?limit=100", "/audit?limit=1000", "/audit/verification",
             "/workspaces/lab/members", "/workspaces/vision/members", "/workspaces/lab/applicants", "/workspaces/lab/secrets",
             "/workspaces/lab/invitations", *(f"/accounts/{name}/{what}" for name in ["ada", "otto", "mfa", "nina-l"]
                                              for what in ["tokens", "ssh_keys", "s3_keys", "identities"])]:
    said[path] = ask("admin", "GET", path)

# The end, and what the launcher wrote without a server.
server.kill()
server.wait()
provider.kill()
kept_names = ["token", "attempts.key", "secret.key", "identity.json", "audit.count", "largest-number", "live", "runs"]
shutil.rmtree(KEPT, ignore_errors=True)
os.makedirs(KEPT)


def keep(path):
    name = os.path.relpath(path, DATA)
    with open(path, "rb") as file:
        data = file.read().replace(DATA.encode(), b"@DATA@").replace(go.encode(), b"@DATA@/go")
    to = os.path.join(KEPT, "data", name)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with open(to, "wb") as file:
        file.write(data)


def keep_all(names):
    for name in names:
        path = os.path.join(DATA, name)
        if os.path.isdir(path):
            for folder, _, files in os.walk(path):
                for file in files:
                    whole = os.path.join(folder, file)
                    if os.path.isfile(whole) and not os.path.islink(whole):
                        keep(whole)
        elif os.path.exists(path):
            keep(path)


keep_all(kept_names)
run = os.path.join(DATA, f"runs/{runs}/1.0")
before = {name: os.path.getsize(os.path.join(run, name)) for name in ["status.jsonl", "rank-0.log", "launcher.log"]}
open(go, "w").close()
while b'"ended"' not in open(os.path.join(run, "status.jsonl"), "rb").read():
    time.sleep(0.05)
later = {name: open(os.path.join(run, name), "rb").read()[size:].decode() for name, size in before.items()}
if DATABASE:
    sql = subprocess.run(["pg_dump", "--inserts", "--no-owner", "--no-acl", "--dbname", DATABASE], check=True, capture_output=True, text=True).stdout
    lines = [line for line in sql.splitlines() if line and not line.startswith(("--", "\\", "SET "))]
    sql = "\n".join(lines) + "\n"
else:
    database = os.path.join(DATA, "danlu.db")
    sql = subprocess.run(["sqlite3", database, ".dump"], check=True, capture_output=True, text=True).stdout
for name, text in {"database.sql": sql, "held.json": json.dumps(held, indent=1, ensure_ascii=False) + "\n",
                   "said.json": json.dumps(said, indent=1, ensure_ascii=False) + "\n",
                   "later.json": json.dumps(later, indent=1, ensure_ascii=False) + "\n"}.items():
    with open(os.path.join(KEPT, name), "w") as file:
        file.write(text.replace(DATA, "@DATA@").replace(go, "@DATA@/go"))
shutil.rmtree(FOLDER)
