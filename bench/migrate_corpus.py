"""Source distributions to migrate, and what has to hold of the outputs.

    migrate_corpus.py fetch OUT PACKAGE...   newest source distributions, unpacked, from the index that pip uses
    migrate_corpus.py check IN OUT           every output compiles, modes stay, files without CUDA are the same; time of ast.parse
"""
import ast
import html
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import urllib.parse
import urllib.request


def fetch(out, *packages):
    configured = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False)
    index = configured.stdout.strip() or "https://pypi.org/simple"
    for package in packages:
        page = f"{index.rstrip('/')}/{package}/"
        with urllib.request.urlopen(page, timeout=60) as answer:
            links = re.findall(r'href="([^"]+\.tar\.gz)[#"]', answer.read().decode())
        link = html.unescape(max(links, key=released))
        with urllib.request.urlopen(urllib.parse.urljoin(page, link), timeout=300) as answer:
            archive = tarfile.open(fileobj=io.BytesIO(answer.read()))
        archive.extractall(out, filter="data")
        print(link.rsplit("/", 1)[-1])


def released(link):
    version = re.search(r"-(\d[\w.]*)\.tar\.gz", link)
    version = version.group(1) if version else "0"
    return not re.search(r"(a|b|rc|dev)\d", version), [int(number) for number in re.findall(r"\d+", version)]


def check(before, after):
    files = changed = lines = faults = 0
    seconds = 0.0
    for path in sorted(pathlib.Path(before).rglob("*.py")):
        other = pathlib.Path(after) / path.relative_to(before)
        old, new = path.read_bytes(), other.read_bytes()
        files += 1
        lines += old.count(b"\n")
        began = time.process_time()
        parses = True
        try:
            ast.parse(old)
        except (SyntaxError, ValueError):
            parses = False
        seconds += time.process_time() - began
        complaints = []
        if path.stat().st_mode != other.stat().st_mode:
            complaints.append("has another mode")
        if old != new:
            changed += 1
            if not re.search(rb"cuda|nccl|\.to\(|device=", old, re.IGNORECASE):
                complaints.append("was changed although it never touches CUDA")
            try:
                compile(new, str(other), "exec")
            except (SyntaxError, ValueError) as error:
                if parses:
                    complaints.append(f"does not compile any more: {error}")
        for complaint in complaints:
            faults += 1
            print(f"{path}: {complaint}")
    print(f"{files} Python files, {changed} changed, {faults} faults; ast.parse: {lines / seconds:.0f} lines per CPU second")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    {"fetch": fetch, "check": check}[sys.argv[1]](*sys.argv[2:])
