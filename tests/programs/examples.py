# SPDX-License-Identifier: Zlib
"""Runs Bullet's examples without a window, with Bullet's own broad phase and with gpulbvh-run.

Usage: examples.py compare EXAMPLES GPULBVH_RUN STEPS               runs all, and counts those with equal results
       examples.py times EXAMPLES GPULBVH_RUN STEPS ROUNDS NAME...  runs these alternately, and times whole steps
EXAMPLES is examples.cpp, linked with the examples of a checkout."""
import os
import statistics
import subprocess
import sys

LIMIT = 120  # maximum seconds for one example
TOO_LONG = f"takes longer than {LIMIT} s"


def run(examples, launcher, number, steps):
    """Runs one example. Returns (status, [(ms, hash) of each step], number of objects, stderr)."""
    environment = dict(os.environ, GPULBVH_VERBOSE="1")
    try:
        done = subprocess.run([*launcher, examples, number, steps], capture_output=True, timeout=LIMIT,
                              text=True, errors="replace", env=environment)
    except subprocess.TimeoutExpired:
        return TOO_LONG, [], 0, "are ours"
    lines = [line.split() for line in done.stdout.splitlines()]
    taken = [(float(words[1]), " ".join(words[2:])) for words in lines if words[:1] == ["step"]]
    objects = [int(words[1]) for words in lines if words[:1] == ["objects"]]
    status = "runs" if done.returncode == 0 and objects else f"ends with {done.returncode}"
    return status, taken, objects[0] if objects else 0, done.stderr


def names_of(examples):
    listed = subprocess.run([examples, "list"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in listed.splitlines() if "\t" in line]


def compare(examples, launcher, steps):
    """Prints a line for each example. Returns how many run only with Bullet's broad phase, or have a NaN
    only with ours."""
    counts, failures = {}, 0
    for number, name in names_of(examples):
        stock = run(examples, [], number, steps)
        if stock[0] != "runs":
            verdict = "does not run with stock"
            counts[verdict] = counts.get(verdict, 0) + 1
            print(f"{name}: {verdict} ({stock[0]})", flush=True)
            continue
        ours = run(examples, launcher, number, steps)
        hashes = [[place for _, place in one[1]] for one in (stock, ours)]
        if ours[0] == TOO_LONG:  # no failure: on a busy machine Bullet's threads wait for each other
            verdict = TOO_LONG
        elif ours[0] != "runs":
            verdict = "runs with stock only"
            failures += 1
        elif stock[2] == 0:
            verdict = "runs with both, and shows no world"
        elif hashes[0] == hashes[1]:
            verdict = "equal to the end"
        else:
            again = run(examples, [], number, steps)
            same = [place for _, place in again[1]] == hashes[0]
            verdict = "equal in part" if same else "differs between two runs of stock, too"
        if any("nan" in place for place in hashes[1]) and not any("nan" in place for place in hashes[0]):
            failures += 1
            verdict += ", NaN"
        if "are ours" not in ours[3]:
            verdict += "; no broad phase of ours"
        equal = next((i for i, (a, b) in enumerate(zip(hashes[0], hashes[1])) if a != b), len(hashes[0]))
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{name}: {verdict} ({stock[0]}, {ours[0]}; {stock[2]} objects, equal for {equal} steps)", flush=True)
    for verdict, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        print(f"{count:4d}  {verdict}")
    print(f"{sum(counts.values()):4d}  examples, {failures} of them fail with ours only")
    if "equal to the end" not in counts:
        sys.exit("nothing was compared")
    return failures


def times(examples, launcher, steps, rounds, names):
    """Prints statistics of steps, and the ratio of each round.

    Every round does the same work, so the time of a step is its shortest time in all rounds."""
    numbers = {name: number for number, name in names_of(examples)}
    print("example: stock, ours: median / mean / longest step in ms; stock / ours, by these, and by the sum of each round")
    for name in names:
        rows = {"stock": [], "ours": []}
        for i in range(rounds):
            for whose in ("stock", "ours") if i % 2 == 0 else ("ours", "stock"):
                status, taken, *_ = run(examples, launcher if whose == "ours" else [], numbers[name], steps)
                if status != "runs":
                    sys.exit(f"{name}: {whose}: {status}")
                rows[whose].append([ms for ms, _ in taken])
        figures = {}
        for whose, runs in rows.items():
            least = [min(column) for column in zip(*runs)]
            figures[whose] = [statistics.median(least), statistics.fmean(least), max(least)]
        ratios = [a / b for a, b in zip(figures["stock"], figures["ours"])]
        sums = sorted(sum(a) / sum(b) for a, b in zip(rows["stock"], rows["ours"]))
        words = [" / ".join(f"{value:.2f}" for value in figures[whose]) for whose in ("stock", "ours")]
        words += [" / ".join(f"{ratio:.2f}" for ratio in ratios), " ".join(f"{ratio:.2f}" for ratio in sums)]
        print(f"{name}: " + "; ".join(words), flush=True)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    what, examples, launcher, steps, *rest = sys.argv[1:]
    if what == "compare":
        sys.exit(1 if compare(examples, [launcher], steps) else 0)
    times(examples, [launcher], steps, int(rest[0]), rest[1:])


main()
