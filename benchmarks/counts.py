#!/usr/bin/env python3
# SPDX-License-Identifier: Zlib
"""Rows of counts.sh from what the interpreter's profile says.

  counts.py BOXES MOVING PROFILE.csv REPLAY.txt   the rows of one scene
  counts.py --table ROWS.csv [COMMITTED]          with a head; fails where a count has risen too far

A step that sorts by code is one row, one that keeps the order another. The columns are medians over the
steps, and behind them the worst."""
import csv
import re
import statistics
import sys

TRAVERSAL = re.compile(r"findBlockPairs")
FIGURES = ("nodes", "warp_instr", "counter_hits", "longest_traversal_warp", "l2_bytes", "bus_bytes")
HEAD = ("boxes", "moving", "pairs", "step", "steps", *FIGURES, "traversal_lanes", "model_us",
        *("worst_" + figure for figure in FIGURES))
MAY_RISE = 1.03


def steps_of(path):
    steps = {}
    with open(path, newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            if row["row"] in ("launch", "memset", "copy", "graph"):
                steps.setdefault(row["step"], []).append(row)
    return [rows for rows in steps.values() if any(row["row"] == "graph" for row in rows)]


def figures_of(rows):
    def number(row, key):
        return float(row.get(key) or 0)

    traversal = [row for row in rows if TRAVERSAL.search(row["name"])]
    nodes = sum(int(re.search(r"(\d+) nodes", row["name"]).group(1)) for row in rows if row["row"] == "graph")
    outside = sum(row["row"] == "launch" and row["graph"] == "0" for row in rows)
    return {
        "nodes": nodes + outside,
        "warp_instr": sum(number(row, "warp_instr") for row in rows),
        "counter_hits": max(number(row, "atomic_max") for row in rows),
        "longest_traversal_warp": max(number(row, "longest_warp") for row in traversal),
        "l2_bytes": 32 * sum(number(row, "l2_reads") + number(row, "l2_writes") for row in rows),
        "bus_bytes": sum(number(row, "bus_read") + number(row, "bus_written") for row in rows),
        "traversal_lanes": max(number(row, "lanes") for row in traversal),
        "model_us": sum(number(row, "estimate_us") for row in rows),
    }


def scene(boxes, moving, profile, replay):
    with open(replay, encoding="utf-8") as f:
        pairs = re.findall(r"pairs=(\d+)", f.read())[-1]
    kinds = {"sorting": [], "kept": []}
    for rows in steps_of(profile):
        sorts = any("Codes" in row["name"] for row in rows)
        kinds["sorting" if sorts else "kept"].append(figures_of(rows))
    out = csv.writer(sys.stdout, lineterminator="\n")
    for kind, steps in kinds.items():
        if not steps:
            continue
        median = {key: statistics.median(step[key] for step in steps) for key in steps[0]}
        worst = [max(step[key] for step in steps) for key in FIGURES]
        out.writerow([boxes, moving, pairs, kind, len(steps), *(round(median[key]) for key in FIGURES),
                      round(median["traversal_lanes"], 1), round(median["model_us"], 1), *map(round, worst)])


def key(row):
    return row["boxes"], row["moving"], row["step"]


def table(path, committed):
    with open(path, newline="", encoding="utf-8") as f:
        rows = [dict(zip(HEAD, row)) for row in csv.reader(f)]
    out = csv.DictWriter(sys.stdout, HEAD, lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    if committed is None:
        return 0
    with open(committed, newline="", encoding="utf-8") as f:
        allowed = {key(row): row for row in csv.DictReader(f)}
    risen = compared = 0
    for row in rows:
        before = allowed.get(key(row))
        if before is None:
            print(f"counts.sh: no committed row for {key(row)}", file=sys.stderr)
            risen += 1
            continue
        for figure in FIGURES:
            compared += 1
            if float(row[figure]) > MAY_RISE * float(before[figure]):
                print(f"counts.sh: {key(row)}: {figure} is {row[figure]}, "
                      f"committed are {before[figure]}", file=sys.stderr)
                risen += 1
    return 1 if risen or not compared else 0


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        sys.exit(table(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
    scene(*sys.argv[1:])
