#!/usr/bin/env python3
"""The least a CUDA step can take: bytes each stage must move, and launches, against a bandwidth.

Usage: floor.py BOXES:PAIRS:LAUNCHES ...     prints a Markdown table

Counts every array once for each stage that reads or writes it, as if caches were perfect within a
stage and empty between stages. The defaults are an H200: 4.3 TB/s, 2 microseconds a launch.
"""
import argparse
import math


def padded(n):
    step = max(256, (1 << (n.bit_length() - 1)) // 16)
    return (n + step - 1) // step * step


def stage_bytes(boxes, pairs):
    n = padded(boxes)
    key = 4 if boxes <= 1 << 20 else 8
    room = pairs + pairs // 8 + 1024
    pair_passes = math.ceil(2 * (n - 1).bit_length() / 8)
    return {
        "bounds": 24 * n,
        "codes": (24 + key + 8) * n,
        "sort": (key + key * 2 * (key + 4)) * n,  # as many passes of 8 bits as a key has bytes
        "hierarchy": (4 + key + 24 + 64 + 32 + 8) * n,
        "traversal": 64 * n + 8 * pairs,
        "pair sort": (16 + 8 + 16 * pair_passes + 16) * room,
        "delta": 32 * pairs,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scene", nargs="+", help="BOXES:PAIRS:LAUNCHES")
    parser.add_argument("--bandwidth", type=float, default=4.3, help="TB/s")
    parser.add_argument("--launch", type=float, default=2, help="microseconds a launch")
    arguments = parser.parse_args()
    stages = list(stage_bytes(1, 0))
    print("| boxes | pairs | " + " | ".join(stages) + " | all, MB | bytes floor, us | launches |"
          " launch floor, us |")
    print("|" + "---|" * (len(stages) + 6))
    for scene in arguments.scene:
        boxes, pairs, launches = map(int, scene.split(":"))
        counts = stage_bytes(boxes, pairs)
        total = sum(counts.values())
        cells = [f"{boxes:,}", f"{pairs:,}"]
        cells += [f"{count / 1e6:.2f}" for count in counts.values()]
        cells += [f"{total / 1e6:.1f}", f"{total / arguments.bandwidth / 1e6:.1f}",
                  str(launches), f"{launches * arguments.launch:.0f}"]
        print("| " + " | ".join(cells) + " |")


main()
