#!/usr/bin/env python3
"""Merges figures into one table: `table.py danlu=FILE slurm=FILE ...`.

Each file has `name<TAB>value<TAB>unit` lines; lines of another shape are talk and skipped. Where Danlu and a peer have the
same figure, the peer's column says how many times better Danlu is: more per second, or fewer of any other unit.
"""

import sys


def main():
    systems, rows = [], {}
    for argument in sys.argv[1:]:
        system, _, path = argument.partition("=")
        figures = read(path)
        if figures:
            systems.append(system)
        for name, (value, unit) in figures.items():
            rows.setdefault((name, unit), {})[system] = value
    if not rows:
        sys.exit("error: no figures")
    show([["figure", "unit", *systems], *(row(name, unit, systems, values) for (name, unit), values in rows.items())])


def read(path):
    figures = {}
    with open(path) as file:
        for line in file:
            parts = line.rstrip("\n").split("\t")
            try:
                name, value, unit = parts
                figures[name] = (float(value), unit)
            except ValueError:
                continue
    return figures


def row(name, unit, systems, values):
    ours = values.get("danlu")
    cells = []
    for system in systems:
        value = values.get(system)
        cell = "–" if value is None else f"{value:,.10g}"
        if value and ours and system != "danlu":
            cell += f" ({(ours / value if unit.endswith('/s') else value / ours):.1f}×)"
        cells.append(cell)
    return [name, unit, *cells]


def show(lines):
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for number, line in enumerate(lines):
        cells = [cell.ljust(width) if column < 2 else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(line, widths))]
        print("| " + " | ".join(cells) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


if __name__ == "__main__":
    main()
