#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""growth_picture.py [--check]: draws docs/growth.svg, the curves of the table `growth` of docs/cost.md.

A panel for each of what grows, both axes logarithmic, a curve for each operation. --check only tells whether the file
is the picture of the table.
"""

import html
import math
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parent
PICTURE = DOCS / "growth.svg"
WIDTH, PANEL, LEFT, BOTTOM, LINE = 1000, 220, 80, 30, 16
COLOURS = ("#2f7ed8", "#c26a00", "#2e8b57", "#a04fb5", "#b03a2e", "#5f6a6a", "#0f9aa5")
# Text and lines are readable on a light page and on a dark one.
STYLE = ("text{fill:#222}.axis{stroke:#999}.grid{stroke:#ddd}"
         "@media(prefers-color-scheme:dark){text{fill:#ddd}.axis{stroke:#888}.grid{stroke:#444}}")


def curves():
    """{what grows: {operation: [(size, nanoseconds)]}}"""
    block = re.search(r"<!-- benchmark: growth -->\n(.*?)<!-- end -->", (DOCS / "cost.md").read_text(), re.S)
    found = {}
    for operation, of, cells in re.findall(r"^\| `([^`]*)` \| (\w+) \|(.*)\|$", block[1], re.M):
        points = [(int(size), float(time)) for size, time in re.findall(r"(\d+): ([\d.]+)", cells)]
        found.setdefault(of, {})[operation] = points
    return found


def panel(of, operations, left, width):
    times = [time for points in operations.values() for _, time in points]
    sizes = sorted({size for points in operations.values() for size, _ in points})
    low, high = 10 ** math.floor(math.log10(min(times))), 10 ** math.ceil(math.log10(max(times)))

    def x(size):
        return left + LEFT + (width - LEFT - 20) * math.log(size) / math.log(sizes[-1])

    def y(time):
        return 10 + (PANEL - 20) * (1 - math.log(time / low) / math.log(high / low))

    lines = []
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        at = y(10 ** power)
        lines.append(f'<path class="grid" d="M{x(1):.0f} {at:.0f}H{x(sizes[-1]):.0f}"/>'
                     f'<text x="{x(1) - 6:.0f}" y="{at + 4:.0f}" text-anchor="end">{10 ** power} ns</text>')
    lines.append(f'<path class="axis" d="M{x(1):.0f} {y(high):.0f}V{y(low):.0f}H{x(sizes[-1]):.0f}" fill="none"/>')
    lines += [f'<text x="{x(size):.0f}" y="{y(low) + 15:.0f}" text-anchor="middle">{size}</text>' for size in sizes]
    lines.append(f'<text x="{x(sizes[-1]):.0f}" y="{y(low) + 30:.0f}" text-anchor="end">{of}</text>')
    for colour, (operation, points) in zip(COLOURS, operations.items()):
        path = " ".join(f"{x(size):.1f},{y(time):.1f}" for size, time in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [f'<circle cx="{x(size):.1f}" cy="{y(time):.1f}" r="3" fill="{colour}"><title>{time} ns</title></circle>'
                  for size, time in points]
    for row, operation in enumerate(operations):
        top = PANEL + BOTTOM + row * LINE
        lines.append(f'<rect x="{left + 8}" y="{top}" width="10" height="10" fill="{COLOURS[row]}"/>'
                     f'<text x="{left + 22}" y="{top + 10}">{html.escape(operation)}</text>')
    return lines


found = curves()
columns = 2
rows = [list(found.items())[at:at + columns] for at in range(0, len(found), columns)]
svg, top = [], 10
for row in rows:
    drawn = [line for column, (of, operations) in enumerate(row)
             for line in panel(of, operations, column * WIDTH // columns, WIDTH // columns)]
    svg += [f'<g transform="translate(0 {top})">', *drawn, "</g>"]
    top += PANEL + BOTTOM + 20 + LINE * max(len(operations) for _, operations in row)
picture = "\n".join([
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="sans-serif" font-size="11">',
    f"<style>{STYLE}</style>", *svg, "</svg>\n",
])
if "--check" not in sys.argv:
    PICTURE.write_text(picture)
elif not PICTURE.is_file() or PICTURE.read_text() != picture:
    sys.exit("docs/growth.svg is not the picture of the table growth of docs/cost.md: docs/growth_picture.py draws it")
