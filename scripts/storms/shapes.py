"""The twelve kinds of jobs of a storm, and how each should end."""

# Enough for every launcher that a storm kills; what a program does by itself is decided by the program.
RETRY = {"limit": 60, "on": ["node_lost", "start_failed"]}


def shape(index):
    """The name of the kind, the fields of the job, the arguments of its witness, and the outcome that is right."""
    kinds = [
        ("short", {}, "lines=5", "succeeded"),
        ("long", {"devices": npu(1)}, "lines=60 pause=80", "succeeded"),
        ("two_workers", {"workers": 2, "ranks": 2, "devices": npu(2)}, "lines=20 pause=20", "succeeded"),
        ("three_workers", {"workers": 3, "ranks": 2}, "lines=20 pause=20", "succeeded"),
        ("fails", {"devices": npu(1)}, "lines=10 pause=10 code=3", "failed"),
        ("retried", {"retry": {"limit": 60, "on": RETRY["on"] + ["exit"]}}, "lines=5 pause=10 fail_first=2", "succeeded"),
        (
            "checkpoints",
            {"checkpoint": "state", "devices": npu(2), "retry": {"limit": 60, "on": RETRY["on"] + ["exit"]}},
            "lines=10 pause=10 steps=12",
            "succeeded",
        ),
        ("burst", {}, "lines=20000", "succeeded"),
        ("crashes", {"devices": npu(1)}, "lines=10 pause=10 crash=1", "failed"),
        ("daemon", {}, "lines=10 pause=30 child=1", "succeeded"),
        ("gang", {"workers": 4, "devices": npu(4)}, "lines=10 pause=60", "succeeded"),
        ("stopped", {"devices": npu(1), "grace": "1s"}, "lines=100000 pause=40", "stopped"),
    ]
    return kinds[index % len(kinds)]


def npu(count):
    return {"kind": "ascend", "count": count}


def spec(index, witness, marks):
    name, fields, arguments, outcome = shape(index)
    job = {
        "name": f"{name}-{index}",
        "command": f"exec {witness} {marks} {arguments}",
        "cpus": 0.01,
        "retry": RETRY,
        **fields,
    }
    return job, name, arguments, outcome
