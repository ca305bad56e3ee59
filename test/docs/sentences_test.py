#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sentences_test.py SOURCE_ROOT [--list]

What the pages below and the comments of these headers say without exception of guards, scopes and stacks stands in
sentences.txt, word for word, beside the test that fails where it is untrue: a sentence that is changed, added or
removed fails here until its test is looked at again. So does every promise of the sections below. --list prints the
sentences that it asks for.

sentences.txt: [PAGE], then a sentence in a line, " => ", and the tests, each a file below test/ and the cases in it.
"""

import collections
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
PAGES = ("README.md", "docs/index.md", "docs/concepts.md", "docs/c.md", "docs/python.md", "include/cuguest/context_guard.h",
         "include/cuguest/exact_guard.h", "include/cuguest/host_scope.h", "include/cuguest/context_scope.h",
         "include/cuguest/no_context_guard.h", "include/cuguest/c.h")
SECTIONS = (("docs/guarantees.md", "## Sharing and caching"),)  # tables: the promises are the first column
ABSOLUTE = re.compile(r"\b(never|always|whatever|however|in any order|at most|nothing|neither|no matter|any number)\b", re.I)
SUBJECT = re.compile(r"\b(guards?|scopes?|stacks?|pairs?|entry|callee|is current)\b", re.I)
FIELDS = r"(?=\b(?:Requires|Stack|Count|Threads|Errors|Cost|Driver):)"


def paragraphs(page):
    text = (root / page).read_text()
    if page.endswith(".h"):
        blocks = re.findall(r"(?:^[ \t]*//.*\n)+", text, re.M)
        text = "\n\n".join(re.sub(r"^[ \t]*//(?:/<?)? ?|\\\\file", "", block, flags=re.M) for block in blocks)
    text = re.sub(r"^```.*?^```|\bNote \[.*?\]|^ +[^\n]*(?:;|\*/)$", "", text, flags=re.M | re.S)
    return (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n|\n~+\n|\n(?=- |\|| *CUDA_ERROR_)|\n(?=\w+: )", text))


def split(paragraph):
    return re.split(r"(?<=[.:])\s+(?=[A-Z`*\[])|(?<=\.) (?=\d\.)|" + FIELDS, paragraph)


def sentences(page):
    for paragraph in paragraphs(page):
        for sentence in split(paragraph):
            if ABSOLUTE.search(sentence) and SUBJECT.search(sentence):
                yield sentence.strip()


def promises(page, title):
    section = (root / page).read_text().split(f"\n{title}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!promise \|)(.*?) \|", section, re.M)
    return (sentence.strip() for row in rows for sentence in split(row))


def table():
    page = None
    for line in (root / "test/docs/sentences.txt").read_text().splitlines():
        if line.startswith("["):
            page = line[1:-1]
        elif line and not line.startswith("#"):
            sentence, tests = line.rsplit(" => ", 1)
            yield page, sentence, tests


def untested(tests):
    """What is named there and is no test."""
    for named in tests.split("; "):
        path, *cases = named.split()
        file = root / path if path.startswith("subprojects/") else root / "test" / path
        text = file.read_text() if file.exists() else None
        if text is None or not cases and not re.search(r"_TEST_CASE|int main|schedules::Groups\(\)|^def test_|^check\(", text, re.M):
            yield path
        for case in cases:
            if text and not re.search(rf"(_TEST_CASE\(\s*|\bvoid |\bdef |{{\"){case}\b|^\w+_TEST\({case}\b", text):
                yield f"{path} {case}"


def main():
    said = collections.Counter((page, sentence) for page in PAGES for sentence in sentences(page))
    said.update((page, sentence) for page, title in SECTIONS for sentence in promises(page, title))
    if "--list" in sys.argv:
        for page, sentence in said:
            print(page, sentence, sep=": ")
        return
    rows = list(table())
    wrong = [f"{page}: no row: {sentence}" for page, sentence in said if (page, sentence) not in {row[:2] for row in rows}]
    wrong += [f"{page}: does not say: {sentence}" for page, sentence, _ in rows if (page, sentence) not in said]
    wrong += [f"{page}: no such test: {name}" for page, _, tests in rows for name in untested(tests)]
    print(*wrong, f"{len(rows)} sentences, {len(wrong)} wrong", sep="\n")
    sys.exit(bool(wrong) or len(rows) < 20)


main()
