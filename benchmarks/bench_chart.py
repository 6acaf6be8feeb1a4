# SPDX-License-Identifier: Zlib
"""The command `chart` of bench.py."""
import csv
import math

SCENES = ("swarm", "debris", "planes", "pile", "city", "stack")
WIDTH, HEIGHT, TOP, BOTTOM = 880, 360, 74, 316
COLOURS = {"one": ("#1b7f79", "#4fc4bb"), "two": ("#c8553d", "#f08a70"), "text": ("#222", "#ddd"),
           "faint": ("#767676", "#9a9a9a"), "grid": ("#ddd", "#444"), "paper": ("#fff", "#16181d")}


def style():
    """Returns the style sheet. Viewers that prefer dark pages get the second colour of each."""
    def rules(place):
        return "".join(f".{name}{{fill:{both[place]}}}.l-{name}{{stroke:{both[place]};fill:none}}"
                       for name, both in COLOURS.items())
    return f"<style>{rules(0)}@media (prefers-color-scheme:dark){{{rules(1)}}}</style>"


def text(x, y, words, colour="text", anchor="start", size=12, bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{colour}" text-anchor="{anchor}" font-size="{size}"{weight}>{words}</text>'


def line(x1, y1, x2, y2, colour, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="l-{colour}"{more}/>'


def short(ms):
    return f"{ms:.3g}" if ms < 100 else f"{ms:.0f}"


def log_place(value, least, most, start, end):
    return start + (end - start) * math.log(value / least) / math.log(most / least)


def bars(found, sets):
    """Draws for each scene how many times as long dbvt takes: two bars, and their milliseconds."""
    left, right = 118, 350
    step = (BOTTOM - TOP) / len(SCENES)
    parts = [text(14, 24, "How many times as long btDbvtBroadphase takes", bold=True, size=13),
             text(14, 42, "Beside the bars: ms per step of ours, then of btDbvtBroadphase", "faint")]

    def place(ratio):
        return left + (right - left) * ratio / 20

    for ratio in (1, 5, 10, 15, 20):
        parts += [line(place(ratio), TOP - 4, place(ratio), BOTTOM, "text" if ratio == 1 else "grid"),
                  text(place(ratio), BOTTOM + 16, ratio, "faint", "middle", 11)]
    for row, scene in enumerate(SCENES):
        y = TOP + row * step
        objects = f"{int(found[0][scene]['boxes']):,}"
        parts += [text(left - 8, y + step / 2 - 3, scene, anchor="end", bold=True),
                  text(left - 8, y + step / 2 + 11, f"{objects} objects", "faint", "end", 10.5)]
        for bar, (colour, rows) in enumerate(zip(("one", "two"), found)):
            ours, dbvt = (float(rows[scene][name]) for name in ("broadphase_ms", "dbvt_broadphase_ms"))
            at, end = y + 4 + 15 * bar, place(dbvt / ours)
            parts += [f'<rect x="{left}" y="{at:.1f}" width="{end - left:.1f}" height="13" class="{colour}"/>',
                      text(end + 5, at + 10.5, f"{short(ours)}, {short(dbvt)}", "text", size=10.5)]
    parts += [f'<rect x="{left + 90 * i}" y="{HEIGHT - 20}" width="11" height="11" class="{colour}"/>' +
              text(left + 16 + 90 * i, HEIGHT - 10, name) for i, (colour, name) in enumerate(zip(("one", "two"), sets))]
    return parts


def curves(found, sets):
    """Draws the same ratio over the number of objects, for boxes that all move and for piles at rest."""
    left, right, least, most = 500, 790, 0.5, 128
    parts = [text(left - 26, 24, "The same in two other scenes", bold=True, size=13),
             text(left - 26, 42, "Below 1 btDbvtBroadphase is faster", "faint")]

    def x(boxes):
        return log_place(boxes, 10, 1e5, left, right)

    def y(ratio):
        return log_place(ratio, least, most, BOTTOM, TOP)

    for ratio in (0.5, 1, 2, 4, 8, 16, 32, 64, 128):
        parts += [line(left, y(ratio), right, y(ratio), "text" if ratio == 1 else "grid"),
                  text(left - 6, y(ratio) + 4, f"{ratio:g}", "faint", "end", 11)]
    for boxes in (10, 100, 1000, 10000, 100000):
        parts.append(text(x(boxes), BOTTOM + 16, f"{boxes:,}", "faint", "middle", 11))
    names = {"walk": "all boxes move", "pile": "a pile"}
    for colour, rows, name in zip(("one", "two"), found, sets):
        for scene in names:
            points = [(x(float(row["boxes"])), y(float(row["ratio"]))) for row in rows if row["scene"] == scene]
            dashes = ' stroke-dasharray="5 3"' if scene == "pile" else ""
            parts.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" class="l-{colour}" '
                         f'stroke-width="2"{dashes}/>')
            if colour == "one":
                parts.append(text(points[-1][0] + 6, points[-1][1] + 4, names[scene], size=11))
    parts.append(text((left + right) / 2, HEIGHT - 10, "objects", "faint", "middle", 11))
    return parts


def chart(options):
    """Draws the README's chart from the CSV files of `scenes` and `over_size`, each with AVX-512 and
    with AVX2."""
    def read(file):
        with open(file, newline="", encoding="utf-8") as rows:
            return list(csv.DictReader(rows))

    sets = ("AVX-512", "AVX2")
    scenes = [{row["scene"]: row for row in read(file)} for file in options.scenes]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
             'font-family="sans-serif">', "<!-- SPDX-License-Identifier: Zlib -->",
             "<title>How many times as long as GpuLbvhBroadphase btDbvtBroadphase takes</title>", style(),
             f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>', *bars(scenes, sets),
             *curves([read(file) for file in options.sizes], sets), "</svg>"]
    with open(options.file, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")
