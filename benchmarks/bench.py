#!/usr/bin/env python3
# SPDX-License-Identifier: Zlib
"""Measures with the programs of a build, or counts with the PTX interpreter, and writes one table.

Every table is CSV with the first columns scene, boxes and pairs. --table prints Markdown instead.
`bench.py table FILE` prints a committed CSV as Markdown. ms are milliseconds, us microseconds.
A ratio is dbvt's figure divided by ours, unless the command says otherwise.
Other work disturbs a machine for a while, so the runs of the compared programs alternate."""
import argparse
import csv
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_chart import chart
from bench_plot import plot

ROOT = Path(__file__).parents[1]
LEADING = ("scene", "boxes", "pairs")


def shown(value):
    """Formats a float with four significant digits."""
    if not isinstance(value, float):
        return str(value)
    digits = 3 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(0, digits)}f}"


class Table:
    """Writes CSV rows as they are measured, or one Markdown table at the end."""

    def __init__(self, as_text, *columns):
        self.as_text, self.columns, self.rows = as_text, LEADING + columns, []
        self.csv = csv.writer(sys.stdout, lineterminator="\n")
        if not as_text:
            self.csv.writerow(self.columns)

    def row(self, scene, boxes, pairs, **figures):
        figures.update(scene=scene, boxes=boxes, pairs=pairs)
        self.rows.append([shown(figures.pop(column, "")) for column in self.columns])
        assert not figures, f"no columns for {figures}"
        if not self.as_text:
            self.csv.writerow(self.rows[-1])
            sys.stdout.flush()

    def end(self):
        if self.as_text:
            print_text(self.columns, self.rows)


def print_text(columns, rows):
    widths = [max(map(len, column)) for column in zip(columns, *rows)]
    for cells in [columns, ["-" * width for width in widths], *rows]:
        print("|", " | ".join(map(str.ljust, cells, widths)), "|")


def run(options, program, *arguments, **environment):
    """Runs a program and returns its standard output."""
    command = [f"{options.bin}/{program}", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}, check=False)
    if done.returncode:
        sys.exit(f"bench.py: status {done.returncode}: {' '.join(command)}")
    return done.stdout


def summaries(said):
    """Returns the fields of each `summary` line, keyed by broad phase."""
    lines = [line.split()[1:] for line in said.splitlines() if line.startswith("summary ")]
    fields = [dict(word.split("=", 1) for word in words) for words in lines]
    return {row["broadphase"]: row for row in fields}


def last_pairs(said):
    return re.findall(r"^frame=.* pairs=(\d+)", said, re.M)[-1]


def make_walk(options, boxes, frames, *more):
    path = f"{options.scratch}/walk.aabb"
    run(options, "make_scene", "walk", boxes, frames, path, *more)
    return path


def spread(name, values):
    return {name: statistics.median_low(values), name + "_least": min(values), name + "_most": max(values)}


def spread_columns(*names):
    return [column for name in names for column in spread(name, [0])]


def compare(options):
    """Times the frames of recorded files with several builds (--bin FOLDER,FOLDER). Takes each frame's
    fastest round, and prints the median, the mean and the longest of the frames in milliseconds."""
    table = Table(options.table, "build", "threads", "frames", "ms", "mean_ms", "longest_ms")
    for file in options.files:
        best = {}
        for _ in range(options.rounds):
            for build in options.bin.split(","):
                said = run(argparse.Namespace(bin=build), "replay", file, "--backend", "host", "--threads",
                           options.threads)
                for frame, ms in re.findall(r"^frame=(\d+) .*find_ms=([0-9.]+)", said, re.M):
                    frames = best.setdefault(build, {})
                    frames[frame] = min(float(ms), frames.get(frame, math.inf))
        for build, frames in best.items():
            ms = [ms for frame, ms in frames.items() if frame != "0"]  # frame 0 grows every buffer
            table.row(Path(file).stem, summaries(said)["core"]["objects"], last_pairs(said), build=build,
                      threads=options.threads, frames=len(ms), ms=statistics.median_low(ms),
                      mean_ms=statistics.mean(ms), longest_ms=max(ms))
    table.end()


def scaling(options):
    """Measures how the host's step time grows with the number of boxes of a random walk. Also measures
    what a second thread gains, and what passing the pairs to Bullet costs. In walks with a larger step
    more pairs end and begin. Times are medians over the frames and the minimum of the rounds. ns_a_work
    is the time divided by n log2 n + pairs. adapter_share is the time of calculateOverlappingPairs
    without the core's update, divided by the time of that update."""
    table = Table(options.table, "step", "one_thread_ms", "ns_a_work", "two_threads_ms", "speedup", "bullet_ms",
                  "adapter_share")
    runs = {"one": ("--threads", 1), "two": ("--threads", 2), "bullet": ("--threads", 1, "--broadphase", "gpu-lbvh")}
    sizes = [(boxes, 0.05) for boxes in (1000, 4096, 8192, 16384, 65536, 262144, 524288, 1048576, 4194304)]
    for boxes, step in sizes + [(200000, 0.05), (200000, 0.15), (200000, 0.35)]:
        if boxes > options.most:
            continue
        # A run takes some tenths of a second. A shorter run would mainly time how soon the second thread gets a core.
        walk = make_walk(options, boxes, max(8, 4000000 // boxes), "--step", step)
        best = {}
        for _ in range(options.rounds):
            for name, more in runs.items():
                said = run(options, "replay", walk, "--backend", "host", *more)
                ms, = [float(fields["median_find_ms"]) for fields in summaries(said).values()]
                best[name] = min(ms, best.get(name, math.inf))
        work = boxes * math.log2(boxes) + int(last_pairs(said))
        table.row("walk", boxes, last_pairs(said), step=str(step), one_thread_ms=best["one"],
                  ns_a_work=1e6 * best["one"] / work, two_threads_ms=best["two"], speedup=best["one"] / best["two"],
                  bullet_ms=best["bullet"], adapter_share=(best["bullet"] - best["one"]) / best["one"])
    table.end()


def scenes(options):
    """Runs every scene of rigid_bodies with gpu-lbvh and dbvt alternately, and prints median times of a
    step. The broad phase's time is that of updateAabbs and calculateOverlappingPairs."""
    table = Table(options.table, "dbvt_pairs", "broadphase_ms", "dbvt_broadphase_ms", "broadphase_ratio", "step_ms",
                  "dbvt_step_ms", "step_ratio")
    for scene in re.findall(r"^(\w+) +\d+ objects", run(options, "rigid_bodies", "--list"), re.M):
        found = summaries(run(options, "rigid_bodies", "--summary", "--scene", scene, "--steps", options.steps,
                              "--threads", options.threads, "--compare", "gpu-lbvh,dbvt"))
        ours, dbvt = found["gpu-lbvh"], found["dbvt"]
        (broad, step), (dbvt_broad, dbvt_step) = [
            (float(fields["update_aabbs_ms"]) + float(fields["calculate_pairs_ms"]), float(fields["step_ms"]))
            for fields in (ours, dbvt)]
        table.row(scene, ours["objects"], ours["pairs"], dbvt_pairs=dbvt["pairs"], broadphase_ms=broad,
                  dbvt_broadphase_ms=dbvt_broad, broadphase_ratio=dbvt_broad / broad, step_ms=step,
                  dbvt_step_ms=dbvt_step, step_ratio=dbvt_step / step)
    table.end()


def over_size(options):
    """Times the broad phase of walks and piles of ten objects and more, on one thread, with gpu-lbvh and
    dbvt alternately. In a walk all boxes move, and are passed in through Bullet's interface. A pile runs
    for 280 steps, in which it comes to rest. Prints medians of the rounds in milliseconds."""
    table = Table(options.table, "gpu_lbvh_ms", "dbvt_ms", "ratio")
    scenes = {"walk": (10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000),
              "pile": (10, 30, 100, 300, 1000, 3000, 10000)}
    for scene, sizes in scenes.items():
        for boxes in sizes:
            if boxes > options.most:
                continue
            rounds = []
            for number in range(options.rounds):
                order = "dbvt,gpu-lbvh" if number % 2 else "gpu-lbvh,dbvt"
                if scene == "walk":
                    walk = make_walk(options, boxes, min(1000, max(12, 300000 // boxes)))
                    said = run(options, "replay", walk, "--broadphase", "all", "--threads", 1, "--backend", "host")
                    field, pairs = "median_total_ms", re.search(r"^gpu-lbvh .* (\d+)$", said, re.M).group(1)
                else:
                    said = run(options, "rigid_bodies", "--summary", "--scene", scene, "--objects", boxes, "--steps",
                               280, "--threads", 1, "--backend", "host", "--compare", order)
                    field, pairs = "broadphase_ms", summaries(said)["gpu-lbvh"]["pairs"]
                rounds.append([float(summaries(said)[name][field]) for name in ("gpu-lbvh", "dbvt")])
            ours, dbvt = (statistics.median(column) for column in zip(*rounds))
            table.row(scene, boxes, pairs, gpu_lbvh_ms=ours, dbvt_ms=dbvt,
                      ratio=statistics.median(theirs / mine for mine, theirs in rounds))
    table.end()


def small_worlds(options):
    """Times small or mostly resting worlds, in which dbvt has little work because it keeps its tree.
    They have few objects, a jittering stack, identical boxes, one moving object in 100,000, actors that
    move and query one after another, or ghosts. Uses one thread. Prints the median, minimum and maximum
    of the rounds. Bullet's own share is the time of updateAabbs with a broad phase that does nothing."""
    table = Table(options.table, "figure", *spread_columns("gpu_lbvh", "dbvt", "ratio"))

    def rows(scene, boxes, figures, measure):
        """Adds a row for each figure. measure(round) returns the pairs, and (ours, dbvt's) for each figure."""
        rounds = [measure(number) for number in range(options.rounds)]
        for place, figure in enumerate(figures):
            ours, dbvt = zip(*[measured[1][place] for measured in rounds])
            table.row(scene, boxes, rounds[0][0], figure=figure, **spread("gpu_lbvh", ours), **spread("dbvt", dbvt),
                      **spread("ratio", [b / a for a, b in zip(ours, dbvt)]))

    def walk(_):
        said = run(options, "replay", file, "--broadphase", "all", "--threads", 1, "--backend", "host")
        found = summaries(said)
        return (re.search(r"^gpu-lbvh .* (\d+)$", said, re.M).group(1),
                [[1e3 * float(found[name]["median_total_ms"]) for name in ("gpu-lbvh", "dbvt")]])

    def scene(number):
        order = "dbvt,gpu-lbvh" if number % 2 else "gpu-lbvh,dbvt"
        found = summaries(run(options, "rigid_bodies", "--summary", "--threads", 1, "--backend", "host", "--compare",
                              order, "--steps", 280, "--objects", boxes, "--scene", *world.split()))
        steps, shares = [[1e3 * float(found[name][field]) for name in ("gpu-lbvh", "dbvt")]
                         for field in ("broadphase_ms", "get_aabb_ms")]
        return found["gpu-lbvh"]["pairs"], [steps, shares, [step - share for step, share in zip(steps, shares)]]

    def one_moves(_):
        found = summaries(run(options, "one_moves", 100000))
        return found["gpu-lbvh"]["pairs"], [[float(found[ours][field]), float(found["dbvt"][field])]
                                            for field in moves.values() for ours in ("gpu-lbvh", "announced")]

    def one_replaced(_):
        found = summaries(run(options, "one_moves", 100000, "--replace"))
        return 0, [[float(found["gpu-lbvh"][field]), float(found["dbvt"][field])] for field in ("alone_us", "alone_p95_us")]

    def in_turn(_):
        found = re.search(r"gpu_lbvh_ms=(\S+) dbvt_ms=(\S+) hits=(\d+)", run(options, "in_turn", boxes, *world.split()))
        return found[3], [[float(found[1]), float(found[2])]]

    def small_step(_):
        found = re.search(r"gpu_lbvh_us=(\S+) dbvt_us=(\S+)", run(options, "small_step", boxes, *world.split()))
        return 0, [[float(found[1]), float(found[2])]]

    def ghosts(_):
        found = re.search(r"gpu-lbvh +(\S+), dbvt +(\S+)", run(options, "ghosts", boxes, *world.split()))
        return 0, [[float(found[1]), float(found[2])]]

    def rays(_):
        found = [line.split() for line in run(options, "rays", boxes).splitlines()]
        figures = [dict(field.split("=") for field in line[1:]) for line in found if line[0] == "summary"]
        return figures[0]["hits"], [[float(line["gpu_lbvh_ns"]), float(line.get("dbvt_ns", line.get("new_ns")))]
                                    for line in figures]

    for boxes in (10, 30, 100):
        file = make_walk(options, boxes, 1000)
        rows("walk", boxes, ["us a frame through Bullet's interface"], walk)
    for world in ("pile", "stack --awake"):
        for boxes in (10, 30, 100, 300, 1000):
            rows(world.replace(" --", " "), boxes,
                 ["us a step", "us a step, Bullet's own share", "us a step without Bullet's share"], scene)
    for boxes, world in ((10, ""), (50, ""), (200, ""), (10, "--construct"), (200, "--construct"),
                         (1500, "--identical --by 0.01"), (1500, "--identical --by 0.1"), (1500, "--identical --by 1")):
        rows(f"small step {world}", boxes, ["us"], small_step)
    moves = {"us a step, all set": "all_us", "p95, all set": "all_p95_us", "us a step, one set": "alone_us",
             "p95, one set": "alone_p95_us", "ns to set an unchanged box": "set_unchanged_ns"}
    rows("one moves", 100000, [figure + told for figure in moves for told in ("", " (announced filters)")], one_moves)
    rows("one replaced", 100000, ["us a step", "p95"], one_replaced)
    for boxes in (5000, 50000):
        for world in ("--actors 20", "--actors 200", "--actors 20 --never-step", "--actors 200 --never-step"):
            rows(f"in turn {world}", boxes, ["ms a frame"], in_turn)
    for boxes, world in ((0, "--actors 10000 --sweeps 0"), (30000, "--actors 20000 --sweeps 0"),
                         (48000, "--actors 2000 --sweeps 1 --boxes 0")):
        rows(f"in turn {world} --never-step", boxes, ["ms a frame"], in_turn)
    for boxes, world in ((100000, "--ghosts 2000 --others-rest"), (20000, "--ghosts 3000 --others-rest"),
                         (2000, "--ghosts 2000"), (8000, "--ghosts 8000"), (12000, "--ghosts 1000")):
        rows(f"ghosts {world}", boxes, ["ms a step"], ghosts)
    rows("rays", 100000, [f"ns a ray {when}" for when in ("before the first step", "after it", "after replacements",
                                                          "compared with a new gpu-lbvh instead of dbvt")], rays)
    table.end()


def tails(options):
    """Measures the slow steps of five scenes on one thread, without other work and while two busy loops
    run. gpu-lbvh and dbvt alternate. `longest` is the longest step divided by the median of the 15 steps
    around it.
    Figures are medians of the rounds; max_ms and longest also have their minimum and maximum. Reasons
    (docs/report.md) are counted over the three longest steps of each round."""
    medians = {"median_ms": "broadphase_ms", "p95_ms": "broadphase_p95_ms", "p99_ms": "broadphase_p99_ms"}
    table = Table(options.table, "cores", "broadphase", *medians, *spread_columns("max_ms", "longest"), "reasons")
    loop = "import os\nwhile os.getppid() == %d: pass" % os.getpid()  # ends with this program, even if that is killed
    loops = []
    for cores in ("quiet", "busy"):
        if cores == "busy":
            loops = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(2)]
        for scene in ("debris", "pile", "swarm", "city", "stack", "stack --awake"):
            rounds = [summaries(run(options, "rigid_bodies", "--summary", "--steps", options.steps, "--threads", 1,
                                    "--backend", "host", "--compare", "gpu-lbvh,dbvt", "--scene", *scene.split()))
                      for _ in range(options.rounds)]
            for name in ("gpu-lbvh", "dbvt"):
                found = [each[name] for each in rounds]
                # Each long step is STEP/MS/AROUND/REASON.
                longest = [[step.split("/") for step in each["longest"].split(",")] for each in found]
                reasons = [step[3] for steps in longest for step in steps]
                table.row(scene.replace(" --", " "), found[0]["objects"], found[0]["pairs"], cores=cores,
                          broadphase=name, reasons=" ".join(f"{reason}:{reasons.count(reason)}"
                                                            for reason in sorted(set(reasons))),
                          **{column: statistics.median_low(float(each[field]) for each in found)
                             for column, field in medians.items()},
                          **spread("max_ms", [float(each["broadphase_max_ms"]) for each in found]),
                          **spread("longest", [max(float(ms) / float(around) for _, ms, around, _ in steps)
                                               for steps in longest]))
    for process in loops:
        process.kill()
    table.end()


def counted(options, first, syncs, program, *arguments):
    """Runs a program on the interpreter. Returns its standard output, and the launches during `syncs`
    waits of the program, beginning with wait number `first`."""
    profile = f"{options.scratch}/profile.csv"
    said = run(options, program, "--backend", "cuda", *arguments, LD_LIBRARY_PATH=options.interpreter,
               PTXVM_NO_PDL="1", PTXVM_PROFILE=profile, PTXVM_PROFILE_FROM_SYNC=str(first),
               PTXVM_PROFILE_SYNCS=str(syncs))
    with open(profile, newline="", encoding="utf-8") as file:
        return said, [row for row in csv.DictReader(file) if row["row"] in ("launch", "memset", "copy", "graph")]


def total(rows, *keys):
    return sum(float(row.get(key) or 0) for row in rows for key in keys)


FIGURES = ("nodes", "warp_instr", "counter_hits", "longest_traversal_warp", "l2_bytes", "bus_bytes")


def is_traversal(row):
    return re.search("find(Block|Changed|Tree)Pairs", row["name"]) is not None


def figures_of(rows):
    """Returns the figures of one step, computed from its launches."""
    traversal = [row for row in rows if is_traversal(row)]
    nodes = sum(int(re.search(r"(\d+) nodes", row["name"]).group(1)) for row in rows if row["row"] == "graph")
    return {
        "nodes": nodes + sum(row["row"] == "launch" and row["graph"] == "0" for row in rows),
        "warp_instr": total(rows, "warp_instr"),
        "counter_hits": max(total([row], "atomic_max") for row in rows),
        "longest_traversal_warp": max(total([row], "longest_warp") for row in traversal),
        "l2_bytes": 32 * total(rows, "l2_reads", "l2_writes"),
        "bus_bytes": total(rows, "bus_read", "bus_written"),
        "traversal_lanes": max(total([row], "lanes") for row in traversal),
        "model_us": total(rows, "estimate_us"),
    }


def kinds_of(rows):
    """Returns the figures of each step, keyed by the kind of step. `sorting` sorts by code, `kept` keeps
    the previous order, and `few` searches only for boxes that changed."""
    steps, kinds = {}, {"sorting": [], "kept": [], "few": []}
    for row in rows:
        steps.setdefault(row["step"], []).append(row)
    for launches in steps.values():
        if any(is_traversal(row) for row in launches):  # not a wait for pairs()
            sorts = any("Codes" in row["name"] for row in launches)
            isFew = any("findChangedPairs" in row["name"] for row in launches)
            kinds["sorting" if sorts else "few" if isFew else "kept"].append(figures_of(launches))
    return {kind: counts for kind, counts in kinds.items() if counts}


def risen(row, committed):
    """Returns messages for the figures that are more than 3 % above the committed row."""
    if committed is None:
        return ["no committed row"]
    return [f"{figure} is {row[figure]}, over 3 % above the committed {committed[figure]}" for figure in FIGURES
            if float(row[figure]) > 1.03 * float(committed[figure])]


def device_search(options, boxes):
    """Counts what a search for unsorted pairs in the walk costs, after memory has grown. Returns the pairs
    and the figures. Boxes and pairs stay on the device. Copies are left out, because the program copies
    only a report."""
    said, rows = counted(options, 5, 1, "worlds", "--walk", boxes, "--layout", "unsorted", "--rounds", 1)
    fields, = csv.DictReader(said.splitlines())
    return fields["one_pairs"], figures_of([row for row in rows if row["row"] != "copy"])


def print_kernels(options, *title):
    print("#", *title, file=sys.stderr)
    subprocess.run([sys.executable, ROOT / "tests/ptxvm/profile_table.py", f"{options.scratch}/profile.csv"],
                   stdout=sys.stderr, check=True)


def counts(options):
    """Counts with the PTX interpreter what steps on a GPU cost when their memory no longer grows. There
    is a row for each number of boxes of make_scene's walk, each hierarchy and each kind of step. Figures
    are medians over the steps, and the worst_ columns are maxima. `device` is not a step, but a
    DevicePairFinder's search for unsorted pairs. Counts are exact and repeatable. No figure is a
    measured time: model_us is a model's estimate, which serves to rank changes."""
    table = Table(options.table, "moving", "hierarchy", "step", "steps", *FIGURES, "traversal_lanes", "model_us",
                  *("worst_" + figure for figure in FIGURES))
    key_of = lambda row: tuple(row[column] for column in ("scene", "boxes", "moving", "hierarchy", "step"))
    committed, bad = {}, []
    if options.check:
        with open(options.check, newline="", encoding="utf-8") as file:
            committed = {key_of(row): row for row in csv.DictReader(file)}

    def put(boxes, pairs, steps, **which):
        median = {key: statistics.median(step[key] for step in steps) for key in steps[0]}
        table.row("walk with ground" if options.ground else "walk", boxes, pairs, steps=len(steps), **which,
                  **{figure: round(median[figure]) for figure in FIGURES},
                  traversal_lanes=f"{median['traversal_lanes']:.1f}", model_us=f"{median['model_us']:.1f}",
                  **{"worst_" + figure: round(max(step[figure] for step in steps)) for figure in FIGURES})
        row = dict(zip(table.columns, table.rows[-1]))
        for what in risen(row, committed.get(key_of(row))) if options.check else []:
            print(f"bench.py: {key_of(row)}: {what}", file=sys.stderr)
            bad.append(what)

    # A step over a binary tree always sorts.
    runs = [(hierarchy, order) for hierarchy in options.hierarchy.split(",")
            for order in ([], ["--sort-each-step"]) if not order or hierarchy == "wide"]
    for boxes, share in [(boxes, share) for boxes in options.boxes for share in options.moving.split(",")]:
        moving = 1.5 / boxes if share == "one" else share
        walk = make_walk(options, boxes, options.first + options.steps, "--moving", moving, *["--ground"] * options.ground)
        for hierarchy, order in runs:
            # Each frame waits twice: for the step, and for pairs(), which belongs to no step. The first frames
            # are left out, because memory grows in them.
            said, rows = counted(options, 2 * options.first - 3, 2 * options.steps, "replay", walk,
                                 "--hierarchy", hierarchy, *order)
            if options.kernels:
                print_kernels(options, f"{boxes} boxes, {share} moving, {hierarchy}", *order, "all counted steps")
            for kind, steps in kinds_of(rows).items():
                put(boxes, last_pairs(said), steps, moving=share, hierarchy=hierarchy, step=kind)
        if share == "1" and not options.ground:
            pairs, figures = device_search(options, boxes)
            if options.kernels:
                print_kernels(options, f"{boxes} boxes, a search on the device")
            put(boxes, pairs, [figures], moving=share, hierarchy="wide", step="device")
    table.end()
    asked = {(str(boxes), share) for boxes in options.boxes for share in options.moving.split(",")}
    made = {key_of(dict(zip(table.columns, row))) for row in table.rows}
    for key in committed.keys() - made:
        scene, boxes, share, hierarchy, _ = key
        if scene == "walk" and not options.ground and (boxes, share) in asked and hierarchy in options.hierarchy:
            print(f"bench.py: {key}: was not counted", file=sys.stderr)
            bad.append(key)
    return bool(bad) or not table.rows


STEP_OF_CALLER = "lbvh::AdaptivePipeline::step(lbvh::StepInput const&, lbvh::StepStats&)"


def calling_thread(options):
    """Measures what steps on a GPU cost the calling thread, without its waiting. Prints the mean and the
    maximum of its CPU time, and of its instructions, which callgrind counts. The GPU's thread runs the
    host's step, so no GPU is needed. The first twenty steps, in which buffers grow, are left out."""
    table = Table(options.table, "moving", "changed", "steps", "mean_us", "most_us", "mean_instructions",
                  "most_instructions")
    for boxes, share in [(boxes, share) for boxes in options.boxes for share in options.moving.split(",")]:
        arguments = [boxes, "--moving", share, "--steps", options.steps, "--stand-in"]
        said = run(options, "calling_thread", *arguments)
        row = dict(re.findall(r"(\w+)=(\d[\d.]*)", said))
        counts = instructions(options, "calling_thread", *arguments) if options.instructions else []
        counted = counts[-options.steps:]
        figures = {"mean_instructions": round(statistics.mean(counted)), "most_instructions": max(counted)} if counted else {}
        table.row("walk", boxes, row["pairs"], moving=share, **{key: row[key] for key in table.columns[4:8]}, **figures)
    table.end()


def instructions(options, program, *arguments):
    """Returns how many instructions the first thread executes in each call of STEP_OF_CALLER, counted by
    callgrind."""
    out = f"{options.scratch}/callgrind"
    subprocess.run(["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", f"--dump-before={STEP_OF_CALLER}",
                    f"--dump-after={STEP_OF_CALLER}", f"--callgrind-out-file={out}", f"{options.bin}/{program}",
                    *map(str, arguments)], stdout=subprocess.DEVNULL, check=True)
    counts = {}
    for part in Path(options.scratch).glob("callgrind.*-01"):
        text = part.read_text(encoding="utf-8")
        if "Trigger: --dump-after" in text:
            counts[int(part.suffix[1:].split("-")[0])] = int(re.search(r"^totals: (\d+)", text, re.M).group(1))
        part.unlink()
    return [counts[number] for number in sorted(counts)]


def worlds(options):
    """Compares the cost of many worlds with that of one spread-out scene with as many boxes and pairs.
    Counts are of small scenes on the PTX interpreter. Times are milliseconds on the host with 1 and 2
    threads, or on a GPU. The ratio is the worlds' figure divided by the scene's."""
    table = Table(options.table, "figure", "worlds", "one", "ratio")
    bad = 0
    # --most N: each world has 0 to N boxes. --shared 0.1: with W worlds, 0.1 W boxes are in all worlds.
    times = ("--worlds 4096 --boxes 64", "--worlds 4096 --most 50000 --shared 0.1")
    small = ("--worlds 256 --boxes 64", "--worlds 128 --most 5000 --shared 0.1")
    sizes = {"counts": small, "host": times, "cuda": times}
    for what in options.what or ["counts", "host"]:
        for arguments in map(str.split, sizes[what]):
            measured = []
            if what == "counts":  # one search, after memory has grown
                said, many = counted(options, 8, 2, "worlds", "--only", "worlds", "--rounds", 5, *arguments)
                _, one = counted(options, 8, 2, "worlds", "--only", "one", "--rounds", 5, *arguments)
                many, one = [[row for row in rows if row["row"] != "graph"] for rows in (many, one)]
                fields, = csv.DictReader(said.splitlines())
                measured = [("warp instructions", int(total(many, "warp_instr")), int(total(one, "warp_instr"))),
                            ("L2 bytes", *[int(32 * total(rows, "l2_reads", "l2_writes")) for rows in (many, one)])]
            for threads in () if what == "counts" else (1, 2) if what == "host" else (1,):
                said = run(options, "worlds", "--backend", what, "--threads", threads, *arguments)
                fields, = csv.DictReader(said.splitlines())
                measured.append((f"ms on {what}, threads: {threads}", float(fields["ms"]), float(fields["one_ms"])))
            for figure, many, one in measured:
                table.row(*map(fields.get, LEADING), figure=figure, worlds=many, one=one, ratio=many / one)
                if options.check and what == "counts" and many > 1.5 * one:
                    print(f"bench.py: {fields['scene']}: {figure} is {many}, over 1.5 times the one scene's {one}",
                          file=sys.stderr)
                    bad += 1
    table.end()
    return bad > 0


def table(options):
    """Prints a committed CSV as Markdown."""
    with open(options.file, newline="", encoding="utf-8") as file:
        columns, *rows = csv.reader(file)
    print_text(columns, rows)


def number(text):
    if not re.fullmatch("[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, but is {text}")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function, **defaults):
        made = commands.add_parser(function.__name__, description=function.__doc__,
                                   help=re.split(r"[.:(]", function.__doc__)[0])
        made.set_defaults(function=function)
        if function not in (table, plot, chart):
            made.add_argument("--table", action="store_true", help="print Markdown instead of CSV")
            made.add_argument("--bin", default=f"{ROOT}/build/release/bin", help="folder with the programs")
        for name, value in defaults.items():
            made.add_argument("--" + name, type=number, default=value, help=f"default: {value}")
        return made

    command(compare, rounds=10, threads=1).add_argument("files", nargs="+", help=".aabb")
    command(scaling, rounds=3, most=4194304)
    command(scenes, threads=1, steps=120)
    command(over_size, rounds=3, most=100000)
    command(small_worlds, rounds=3)
    command(tails, steps=120, rounds=3)
    made = command(counts, steps=32)
    made.add_argument("--first", type=number, default=12,
                      help="the first counted step (default: 12, when the launches have begun to repeat)")
    made.add_argument("boxes", nargs="*", type=number, default=[1024, 12486, 100000])
    made.add_argument("--check", metavar="FILE", help="fail if a count is more than 3 %% above FILE's")
    made.add_argument("--kernels", action="store_true", help="also print each kernel to standard error")
    made.add_argument("--moving", default="1",
                      help="share of the boxes that move, or `one` for one box; with commas, one scene each")
    made.add_argument("--hierarchy", default="wide,binary", help="default: wide,binary")
    made.add_argument("--ground", action="store_true", help="the first box is an infinite plane")
    calls = command(calling_thread, steps=100)
    calls.add_argument("boxes", nargs="*", type=number, default=[12486, 100000])
    calls.add_argument("--moving", default="1,0.1,0", help="share of the boxes that move; with commas, one scene each (default: 1,0.1,0)")
    calls.add_argument("--instructions", action="store_true", help="run again under valgrind, to count instructions")
    other = command(worlds)
    other.add_argument("what", nargs="*", metavar="counts|host|cuda", help="default: counts host")
    other.add_argument("--check", action="store_true", help="fail if a count is more than 1.5 times the one scene's")
    for each in (made, other):
        each.add_argument("--interpreter", default=f"{ROOT}/build/release/tests/ptxvm", help="folder of the interpreter's library")
    made = command(plot)
    made.add_argument("file", help="stages.csv")
    made.add_argument("folder")
    made = command(chart)
    made.add_argument("--scenes", nargs=2, required=True, metavar="CSV", help="of `scenes`: AVX-512, AVX2")
    made.add_argument("--sizes", nargs=2, required=True, metavar="CSV", help="of `over_size`: AVX-512, AVX2")
    made.add_argument("file", help="the .svg to write")
    command(table).add_argument("file", help="any CSV of this program")

    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as options.scratch:
        return int(bool(options.function(options)))


if __name__ == "__main__":
    sys.exit(main())
