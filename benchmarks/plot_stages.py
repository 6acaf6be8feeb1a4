#!/usr/bin/env python3
# SPDX-License-Identifier: Zlib
"""Two pictures from the CSV that `stages --csv` writes: time over n, and the story's steps.

Usage: plot_stages.py STAGES.csv OUTPUT_FOLDER     (Debian: python3-matplotlib)

Writes time_over_n.svg (one panel a stage, uniform scenes) and story.svg (the traversals of the debris
scene in the order in which the founding documents tell them, theirs beside ours).
"""
import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "stages"  # the same file for the same numbers
import matplotlib.pyplot as plt

STORY = ["recursive", "stack, object order", "stack, leaf order", "stack, half pairs",
         "skip links, half pairs", "simultaneous, from the root", "production"]


def over_n(rows, path):
    stages = ["sort", "hierarchy", "traversal"]
    figure, axes = plt.subplots(1, 3, figsize=(15, 5))
    for axis, stage in zip(axes, stages):
        names = list(dict.fromkeys(r["variant"] for r in rows if r["stage"] == stage))
        for name in names:
            points = sorted((int(r["boxes"]), float(r["ms"])) for r in rows
                            if r["stage"] == stage and r["variant"] == name)
            axis.plot(*zip(*points), marker="o", markersize=3, label=name,
                      linewidth=2.5 if name == "production" else 1)
        axis.set(title=stage, xlabel="boxes", ylabel="milliseconds", xscale="log", yscale="log")
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize=7)
    figure.suptitle(f"Variants of each stage, uniform scenes, {rows[0]['space']}")
    save(figure, path)


def story(rows, path):
    found = {r["variant"]: r for r in rows if r["stage"] == "traversal"}
    names = [name for name in STORY if name in found]
    figure, axis = plt.subplots(figsize=(9, 4.5))
    ours = [float(found[name]["ms"]) for name in names]
    theirs = [float(found[name]["gtx690_ms"] or 0) for name in names]
    at = range(len(names))
    axis.barh([i - 0.2 for i in at], ours, 0.4, label=rows[0]["space"])
    axis.barh([i + 0.2 for i in at], theirs, 0.4, label="GeForce GTX 690, 2012 (documents)")
    for i, name in enumerate(names):
        tests = found[name]["tests_a_query"]
        if tests:
            axis.text(ours[i], i - 0.2, f" {float(tests):.0f} tests a query", va="center", fontsize=8)
    axis.set_yticks(list(at), names)
    axis.invert_yaxis()
    axis.margins(x=0.18)  # room for the words beside the bars
    axis.set(xlabel="milliseconds", title=f"Traversals of the debris scene, {rows[0]['boxes']} boxes, "
                                          f"{rows[0]['pairs']} pairs")
    axis.legend()
    save(figure, path)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    print(path)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    out = Path(sys.argv[2])
    uniform = [r for r in rows if r["scene"] == "uniform"]
    debris = [r for r in rows if r["scene"] == "debris"]
    if uniform:
        over_n(uniform, out / "time_over_n.svg")
    if debris:
        story(debris, out / "story.svg")


main()
