"""What ModelArts starts: runs the training with its data and copies the output back. Made by `danlu migrate --modelarts`.

    python modelarts_entry.py --data_url /mounted/data --train_url /mounted/output [arguments of the training]
"""
import argparse
import os
import shutil
import subprocess
import sys

MAIN = "{main}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_url", default="/home/ma-user/modelarts/inputs/data_url_0")
    parser.add_argument("--train_url", default="/home/ma-user/modelarts/outputs/train_url_0")
    known, rest = parser.parse_known_args()
    code = os.path.dirname(os.path.abspath(__file__))
    requirements = os.path.join(code, "requirements.txt")
    if os.path.exists(requirements):
        subprocess.check_call([sys.executable, "-m", "pip", "install", "-r", requirements])
    environment = dict(os.environ, DATA_URL=known.data_url, TRAIN_URL=known.train_url)
    result = subprocess.call([sys.executable, os.path.join(code, MAIN), *rest], cwd=code, env=environment)
    output = os.path.join(code, "output")
    if os.path.isdir(output):
        shutil.copytree(output, known.train_url, dirs_exist_ok=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
