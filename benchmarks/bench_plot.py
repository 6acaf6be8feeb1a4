# SPDX-License-Identifier: Zlib
"""The command `plot` of bench.py."""
import csv
from pathlib import Path

STORY = ["recursive", "stack, object order", "stack, leaf order", "stack, half pairs", "skip links, half pairs",
         "simultaneous, from the root", "production"]


def plot(options):
    """Draws two pictures into FOLDER, from a CSV of `stages --csv`. time_over_n.svg shows uniform scenes
    and has one panel per stage. story.svg shows the traversals of the debris scene in the order of the
    founding documents, and both our times and the documents'. Needs Debian's python3-matplotlib."""
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "stages"  # so that the same numbers give the same file
    from matplotlib import pyplot

    def save(figure, name):
        figure.tight_layout()
        figure.savefig(Path(options.folder) / name, metadata={"Date": None})
        print(Path(options.folder) / name)

    with open(options.file, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    uniform = [row for row in rows if row["scene"] == "uniform"]
    if uniform:
        figure, axes = pyplot.subplots(1, 3, figsize=(15, 5))
        for axis, stage in zip(axes, ["sort", "hierarchy", "traversal"]):
            found = [row for row in uniform if row["stage"] == stage]
            for name in dict.fromkeys(row["variant"] for row in found):
                points = sorted((int(row["boxes"]), float(row["ms"])) for row in found if row["variant"] == name)
                axis.plot(*zip(*points), marker="o", markersize=3, label=name,
                          linewidth=2.5 if name == "production" else 1)
            axis.set(title=stage, xlabel="boxes", ylabel="milliseconds", xscale="log", yscale="log")
            axis.grid(True, which="major", alpha=0.3)
            axis.legend(fontsize=7)
        figure.suptitle(f"Variants of each stage, uniform scenes, {uniform[0]['space']}")
        save(figure, "time_over_n.svg")
    debris = {row["variant"]: row for row in rows if row["scene"] == "debris" and row["stage"] == "traversal"}
    if debris:
        found = [debris[name] for name in STORY if name in debris]
        figure, axis = pyplot.subplots(figsize=(9, 4.5))
        at = range(len(found))
        axis.barh([i - 0.2 for i in at], [float(row["ms"]) for row in found], 0.4, label=found[0]["space"])
        axis.barh([i + 0.2 for i in at], [float(row["gtx690_ms"] or 0) for row in found], 0.4,
                  label="GeForce GTX 690, 2012 (documents)")
        for i, row in enumerate(found):
            if row["tests_a_query"]:
                axis.text(float(row["ms"]), i - 0.2, f" {float(row['tests_a_query']):.0f} tests a query", va="center",
                          fontsize=8)
        axis.set_yticks(list(at), [row["variant"] for row in found])
        axis.invert_yaxis()
        axis.margins(x=0.18)  # space for the texts next to the bars
        axis.set(xlabel="milliseconds",
                 title=f"Traversals of the debris scene, {found[0]['boxes']} boxes, {found[0]['pairs']} pairs")
        axis.legend()
        save(figure, "story.svg")
