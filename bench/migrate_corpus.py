"""Source distributions to migrate, and what has to hold of the outputs.

    migrate_corpus.py fetch OUT PACKAGE[==VERSION]...   source distributions, or wheels where there are none, unpacked, from the index that pip uses
    migrate_corpus.py check IN OUT                        every output compiles, modes stay, files without CUDA are the same; time of ast.parse
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
import zipfile


def fetch(out, *packages):
    configured = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False)
    index = configured.stdout.strip() or default_index()
    failed = []
    for package in packages:
        name, _, version = package.partition("==")
        if (pathlib.Path(out) / name).exists():
            continue
        try:
            print(fetch_one(index, name, version, pathlib.Path(out) / name), flush=True)
        except (OSError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
            failed.append(f"{package}: {error}")
    for failure in failed:
        print(failure, file=sys.stderr)
    sys.exit(1 if failed else 0)


def default_index():
    """Where pip looks without any configuration."""
    tell = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    return subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True).stdout.strip()


def fetch_one(index, name, version, out):
    """The source distribution of a version (the newest where none is named), or a wheel where there is none."""
    page = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    with urllib.request.urlopen(page, timeout=60) as answer:
        links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', answer.read().decode())]
    links = [link for link in links if not version or f"-{version}" in file_of(link)]
    sources = [link for link in links if file_of(link).endswith((".tar.gz", ".zip"))]
    wheels = [link for link in links if file_of(link).endswith(".whl")]
    if not sources and not wheels:
        raise ValueError("has no file to unpack")
    link = max(sources or wheels, key=released)
    with urllib.request.urlopen(urllib.parse.urljoin(page, link), timeout=600) as answer:
        content = io.BytesIO(answer.read())
    if file_of(link).endswith(".tar.gz"):
        tarfile.open(fileobj=content).extractall(out, filter="data")
    else:
        zipfile.ZipFile(content).extractall(out)
    return file_of(link)


def file_of(link):
    return link.split("#")[0].rsplit("/", 1)[-1]


def released(link):
    version = re.search(r"-(\d[\w.]*?)(?:\.tar\.gz|\.zip|-)", file_of(link))
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
