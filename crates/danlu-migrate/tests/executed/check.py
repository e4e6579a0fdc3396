"""check.py MIGRATED [PORTABLE...]: every program under the stand-in for CUDA, its copies under the stand-ins that they are for.

MIGRATED is what `danlu migrate -i programs` wrote, for torch_npu. Each PORTABLE is what `--reverse` or `--portable` made of the
programs or of MIGRATED, for both. Losses must agree to the last printed digit; the program that becomes distributed must reach a
small loss in two processes, because its order of samples is another one.
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
AS_CUDA = "import runpy, sys, accelerator; accelerator.install('cuda'); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def loss_of(program, device, ranks=1):
    """What a program prints where there is only this kind of device."""
    paths, command = [HERE / "standin"], [sys.executable, str(program)]
    if device == "npu":
        paths.append(HERE / "standin" / "npu")
    else:
        command = [sys.executable, "-c", AS_CUDA, str(program)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, [*paths, program.parent])), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        for rank in range(ranks):
            environment = dict(shared, RANK=str(rank), LOCAL_RANK=str(rank))
            processes.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        outputs = [process.communicate(timeout=300) for process in processes]
    for process, (_, errors) in zip(processes, outputs):
        if process.returncode != 0:
            raise SystemExit(f"{command} failed:\n{errors[-3000:]}")
    return next(line for line in outputs[0][0].splitlines() if line.startswith("loss "))


def same(name, expected, program, device, ranks):
    found = loss_of(program, device, ranks)
    print(f"{name}: {expected} as it was, {found} in {program.parent.name} on {device}")
    if found != expected:
        raise SystemExit(f"{name} trains to another loss")


def main(migrated, *portable):
    migrated = pathlib.Path(migrated).resolve()
    for name, ranks in (("single", 1), ("amp", 1), ("profiled", 1), ("ddp", 2)):
        before = loss_of(HERE / "programs" / f"{name}.py", "cuda", ranks)
        same(name, before, migrated / f"{name}.py", "npu", ranks)
        # Each kind of device has a profiler of its own: that is left to a person.
        for copy in portable if name != "profiled" else ():
            for device in ("cuda", "npu"):
                same(name, before, pathlib.Path(copy).resolve() / f"{name}.py", device, ranks)
    after = loss_of(migrated / "to_ddp.py", "npu", 2)
    print(f"to_ddp: {after} in two processes")
    if float(after.split()[1]) > 0.01:
        raise SystemExit("the program that became distributed does not learn")


if __name__ == "__main__":
    main(*sys.argv[1:])
