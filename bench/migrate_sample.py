"""Changes and leftovers of a migrated corpus, drawn at random to be read by a person.

    migrate_sample.py changes IN OUT COUNT [SEED]   single changes with their lines before and after, from all projects
    migrate_sample.py left IN OUT COUNT [SEED]      lines of outputs that still say cuda or nccl in code, and are in no report

The same seed draws the same sample from the same outputs.
"""
import io
import json
import pathlib
import random
import re
import sys
import tokenize

REPORT = "transplant_result_file/report.json"
CONTEXT = 3


def changes(before, after):
    for report in sorted(pathlib.Path(after).glob(f"*/{REPORT}")):
        project = report.parent.parent.name
        for file in json.loads(report.read_text())["files"]:
            for change in file["changes"]:
                if change["rule"] != "torch-npu-import":
                    yield project, file["path"], change


def show_change(before, after, number, project, path, change):
    lines = (pathlib.Path(before) / project / path).read_text(errors="replace").split("\n")
    new = (pathlib.Path(after) / project / path).read_text(errors="replace").split("\n")
    first = change["start_line"]
    print(f"== {number}. {project}/{path}:{first}:{change['column']} {change['rule']} ({change['grade']}): {change['message']}")
    for at in range(max(1, first - CONTEXT), min(len(lines), first + CONTEXT) + 1):
        print(("> " if at == first else "  ") + lines[at - 1])
    old = lines[first - 1].strip()
    near = [line for line in new[max(0, first - 4) : first + 12] if similar(old, line.strip())]
    print("= " + (near[0].strip() if near else "?"))


def similar(old, new):
    def normal(text):
        return re.sub(r"npu|hccl|cuda|nccl|\W", "", text.lower())

    return old != new and bool(normal(old)) and (normal(old) in normal(new) or normal(new) in normal(old))


def left(before, after):
    """Code, not comments or docstrings, that still names CUDA and of which no report speaks."""
    for report in sorted(pathlib.Path(after).glob(f"*/{REPORT}")):
        root = report.parent.parent
        for file in json.loads(report.read_text())["files"]:
            if not file["path"].endswith(".py"):
                continue
            text = (root / file["path"]).read_text(errors="replace")
            if not re.search("cuda|nccl", text, re.IGNORECASE):
                continue
            told = {line for note in file["findings"] for line in range(note["start_line"], note["end_line"] + 1)}
            old = (pathlib.Path(before) / root.name / file["path"]).read_text(errors="replace").split("\n")
            told_texts = {old[line - 1].strip() for line in told if line <= len(old)}
            for number, line in code_lines(text):
                if re.search("cuda|nccl", line, re.IGNORECASE) and line.strip() not in told_texts:
                    yield root.name, file["path"], number


def code_lines(text):
    """Lines with names, or with strings that are not alone on their line."""
    lines = text.split("\n")
    seen = set()
    try:
        previous = tokenize.NEWLINE
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_docstring = token.type == tokenize.STRING and previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL)
            if token.type not in (tokenize.COMMENT, tokenize.NL) and not is_docstring and re.search("cuda|nccl", token.string, re.IGNORECASE):
                seen.add(token.start[0])
            if token.type != tokenize.COMMENT:
                previous = token.type
    except (tokenize.TokenError, SyntaxError):
        return
    for number in sorted(seen):
        yield number, lines[number - 1]


def show_left(before, after, number, project, path, line):
    lines = (pathlib.Path(after) / project / path).read_text(errors="replace").split("\n")
    print(f"== {number}. {project}/{path}:{line}")
    for at in range(max(1, line - CONTEXT), min(len(lines), line + CONTEXT) + 1):
        print(("> " if at == line else "  ") + lines[at - 1])


def main(what, before, after, count, seed="1"):
    found, show = {"changes": (changes, show_change), "left": (left, show_left)}[what]
    everything = list(found(before, after))
    drawn = random.Random(int(seed)).sample(everything, min(int(count), len(everything)))
    print(f"{len(drawn)} of {len(everything)}, seed {seed}")
    for number, item in enumerate(sorted(drawn, key=str), 1):
        show(before, after, number, *item)


if __name__ == "__main__":
    main(*sys.argv[1:])
