"""check.py MIGRATED: every program under the stand-in for CUDA, its migrated copy under the stand-in for torch_npu.

MIGRATED is what `danlu migrate -i programs` wrote. Losses must agree to the last printed digit; the program that becomes
distributed must reach a small loss in two processes, because its order of samples is another one.
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
AS_CUDA = "import runpy, sys, accelerator; accelerator.install('cuda'); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def loss_of(command, ranks=1):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = dict(os.environ, PYTHONPATH=str(HERE / "standin"), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
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


def main(migrated):
    migrated = pathlib.Path(migrated).resolve()
    for name, ranks in (("single", 1), ("amp", 1), ("profiled", 1), ("ddp", 2)):
        before = loss_of([sys.executable, "-c", AS_CUDA, str(HERE / "programs" / f"{name}.py")], ranks)
        after = loss_of([sys.executable, str(migrated / f"{name}.py")], ranks)
        print(f"{name}: {before} as it was, {after} migrated")
        if before != after:
            raise SystemExit(f"{name} trains to another loss")
    after = loss_of([sys.executable, str(migrated / "to_ddp.py")], 2)
    print(f"to_ddp: {after} in two processes")
    if float(after.split()[1]) > 0.01:
        raise SystemExit("the program that became distributed does not learn")


if __name__ == "__main__":
    main(sys.argv[1])
