#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""trace_picture.py TRACE: prints an SVG picture of a trace of `cuguest-audit --trace`, as Perfetto draws it.

A row for each entry of each thread's context stack, with the context's name or number, a mark with its name for each finding, and a row for
each counter. Times are spread evenly, an equal width between two changes, so that what happens within a
microsecond can be seen.
"""

import html
import json
import pathlib
import re
import sys

WIDTH, LEFT, ROW, GAP = 1000, 130, 22, 14
COLOURS = ("#7fb2e5", "#f2b36f", "#93cf96", "#d8a0d8", "#e58f8f", "#c9c27a")

events = json.loads(pathlib.Path(sys.argv[1]).read_text())
names = {("thread", event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
names.update({("process", event["pid"]): event["args"]["name"] for event in events if event["name"] == "process_name"})
timed = sorted((event for event in events if "ts" in event), key=lambda event: event["ts"])
times = sorted({event["ts"] for event in timed})
step = (WIDTH - LEFT - 10) / max(len(times) - 1, 1)
place = {time: LEFT + i * step for i, time in enumerate(times)}
colours = {}
svg = []


def text(x, y, words, extra=""):
    svg.append(f'<text x="{x:.0f}" y="{y:.0f}" {extra}>{html.escape(words)}</text>')


def draw_slice(name, begin, end, top):
    colour = colours.setdefault(name, COLOURS[len(colours) % len(COLOURS)])
    width = place[end] - place[begin]
    svg.append(f'<rect x="{place[begin]:.1f}" y="{top}" width="{max(width, 1):.1f}" height="{ROW - 2}" fill="{colour}">'
               f"<title>{html.escape(name)}</title></rect>")
    label = next((label for label in (name, *re.findall(r"\d+", name)[:1]) if width > 6.5 * len(label)), "")
    text(place[begin] + 3, top + 14, label)


def draw_thread(thread, top):
    stack, depth, marks = [], 1, []
    for event in (event for event in timed if event["tid"] == thread and event["ph"] != "C"):
        if event["ph"] == "B":
            stack.append((event["name"], event["ts"]))
            depth = max(depth, len(stack))
        elif event["ph"] == "E":
            name, begin = stack.pop()
            draw_slice(name, begin, event["ts"], top + len(stack) * ROW)
        else:
            marks.append(event)
    for name, begin in stack:
        draw_slice(name, begin, times[-1], top)
    text(4, top + 15, names.get(("thread", thread), str(thread)))
    bottom = top + depth * ROW
    for row, event in enumerate(marks):
        x = place[event["ts"]]
        y = bottom + row * ROW
        svg.append(f'<path d="M{x:.1f} {top} V{y + 10} m0 -4 l-4 8 h8 z" stroke="#c00000" fill="#c00000"/>')
        words = f'{event["name"]}: {event["args"]["culprit"]}'
        left = x + 12 + 6.2 * len(words) > WIDTH
        text(x - 10 if left else x + 10, y + 15, words, 'fill="#c00000"' + (' text-anchor="end"' if left else ""))
    return bottom + len(marks) * ROW + GAP


def draw_counter(name, samples, top):
    most = max(value for _, value in samples) or 1
    height = ROW - 4
    path = ""
    for time, value in [*samples, (times[-1], samples[-1][1])]:
        y = top + height - height * value / most
        path += f"M{place[time]:.1f} {top + height}V{y:.1f}" if not path else f"H{place[time]:.1f}V{y:.1f}"
    svg.append(f'<path d="{path}V{top + height}z" fill="#cccccc" stroke="#888888"/>')
    text(4, top + 15, f"{name} (max. {most})")
    return top + ROW + GAP


top = 10
for thread in sorted({event["tid"] for event in timed if event["ph"] != "C"}):
    top = draw_thread(thread, top)
counters = {}
for event in timed:
    if event["ph"] == "C":
        counters.setdefault(event["name"], []).append((event["ts"], event["args"]["value"]))
for name, samples in sorted(counters.items()):
    top = draw_counter(name, samples, top)
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="sans-serif" font-size="11">')
print('<rect width="100%" height="100%" fill="white"/>')
print("\n".join(svg))
print("</svg>")
