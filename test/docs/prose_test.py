#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prose_test.py SOURCE_ROOT [--count]

Fails on the words and constructions of retired.txt, wherever a person reads: pages, comments,
messages, names of tests. --count prints the number of hits in each folder. Fails too on a `Threads:` of a public
header that does not begin with one of the words of docs/headers.md.
"""

import collections
import io
import pathlib
import re
import sys
import tokenize

root = pathlib.Path(sys.argv[1]).resolve()
PLACES = ("README.md", "SECURITY.md", "CHANGELOG.md", "docs", "include", "lib", "test", "examples", "kernels", "subprojects/cudasim",
          "subprojects/cudaimage", "subprojects/cuguest-audit", "meson.build", "meson_options.txt")


def retired():
    for line in (root / "test" / "docs" / "retired.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            expression, instead = line.rsplit(" => ", 1)
            yield re.compile(expression, re.I | re.M), instead


def joined(pieces):
    """(line, text) pieces: those on lines that follow each other are one paragraph."""
    paragraph, begin, last = [], 0, -1
    for line, text in pieces:
        if paragraph and (line > last + 1 or not text.strip()):
            yield begin, paragraph
            paragraph = []
        if text.strip():
            if not paragraph:
                begin = line
            paragraph.append((line, text.strip()))
        last = line
    if paragraph:
        yield begin, paragraph


C_TOKENS = re.compile(
    r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|R"\((?P<raw>.*?)\)"|"(?P<string>(?:[^"\\\n]|\\.)*)"|' r"'(?:[^'\\\n]|\\.)+'|"
    r"\bBOOST_(?:AUTO|FIXTURE|DATA)_TEST_(?:CASE|SUITE)\(\s*(?P<name>\w+)|^#\s*include[^\n]*", re.S | re.M)


def of_c(text):
    line_at = 1
    position = 0
    for token in C_TOKENS.finditer(text):
        line_at += text.count("\n", position, token.start())
        position = token.start()
        kind = token.lastgroup
        if kind == "line":
            yield line_at, token["line"]
        elif kind == "string" and re.fullmatch(r"[\w./-]*", token["string"]):
            continue  # a name
        elif kind in ("block", "raw", "string"):
            for number, line in enumerate(token[kind].split("\n")):
                yield line_at + number, line
        elif kind == "name":
            yield line_at, "" 
            yield line_at, token["name"].replace("_", " ")


def of_python(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and not re.fullmatch(r"""["'][\w:./-]*["']""", token.string):
            for number, line in enumerate(token.string.split("\n")):
                yield token.start[0] + number, re.sub(r"""^[rbuf]*("{3}|'{3}|["'#])|("{3}|'{3}|["'])$""", "", line.strip())


def of_script(text):
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"(?:^|\s)#(?!!)(.*)", line)
        if comment:
            yield number, comment[1]
        for string in re.findall(r"'([^'\n]*\s[^'\n]*)'", line):
            yield number, string


def of_page(text):
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code = not code
            yield number, ""
        elif not code:
            yield number, line if not line.startswith("|") else re.sub(r"`[^`]*`", "", line)
        elif "//" in line:
            yield number, ""
            yield number, line.split("//", 1)[1]


READERS = {".c": of_c, ".h": of_c, ".cc": of_c, ".cu": of_c, ".in": of_script, ".py": of_python, ".md": of_page, ".build": of_script,
           ".txt": of_script, ".sh": of_script, "": of_script}
SKIPPED = {"retired.txt", "LICENSE", "prose_test.py", "migrate_test.py"}


def files(place):
    path = root / place
    if path.is_file():
        return [path]
    return sorted(p for p in path.rglob("*") if p.is_file() and p.suffix in READERS and p.name not in SKIPPED
                  and not {"__pycache__", "corpus", "hardware"} & set(p.relative_to(root).parts[:-1]))


def hits(path):
    for begin, paragraph in joined(READERS[path.suffix](path.read_text())):
        text, starts = "", []
        for line, piece in paragraph:
            starts.append((len(text), line))
            text += piece + " "
        bare = re.sub(r"`[^`]*`", lambda code: "`" + "x" * (len(code[0]) - 2) + "`", text)
        for expression, instead in RETIRED:
            for hit in expression.finditer(bare):
                line = max(line for start, line in starts if start <= hit.start())
                yield line, text[hit.start():hit.end()].strip(), instead


def unnamed_threads(header, words):
    """(line, text) of the comments' labels that begin with another word than these."""
    for number, line in enumerate(header.read_text().splitlines(), 1):
        for label in re.findall(r"///.*?\b(Threads\b[\w ,]*:.*|[A-Z]\w+,[\w ,]*\bthreads\b[\w ,]*:.*)", line):
            if not re.match(rf"Threads: (?:{'|'.join(words)})[.;](?: |$)", label):
                yield number, label


RETIRED = list(retired())
counting = "--count" in sys.argv
counts = collections.Counter()
by_word = collections.Counter()
checked = failed = 0
for place in PLACES:
    for path in files(place):
        checked += 1
        found = list(hits(path))
        failed += bool(found)
        for line, words, instead in found:
            counts["/".join(path.relative_to(root).parts[:2])] += 1
            by_word[instead] += 1
            if not counting or "-v" in sys.argv:
                print(f"{path.relative_to(root)}:{line}: {words}: {instead}")
table = (root / "docs" / "headers.md").read_text().split("\n`Threads:` begins with")[1]
words = re.findall(r"^\| `(\w+)` \|", table, re.M)
for folder in (root / "include", *sorted((root / "subprojects").glob("*/include"))):
    for header in sorted(folder.rglob("*.h")):
        found = list(unnamed_threads(header, words))
        checked += 1
        failed += bool(found)
        for line, label in found:
            print(f"{header.relative_to(root)}:{line}: {label}: begin with one of {', '.join(words)}; see docs/headers.md")
if counting:
    for folder, count in counts.most_common():
        print(f"{count:5} {folder}")
    for word, count in by_word.most_common():
        print(f"{count:5} {word}")
print(f"cases: {checked - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed or not checked else 0)
