#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""advice_test.py SOURCE_ROOT [--list]

What the library's texts tell a reader to do is done by a test, which sees that it comes true. A piece of advice is a
clause of a string of lib/ or include/ that begins with one of VERBS: "; use the Async form on another stream". The case
that follows it has its words in Advised("...") (test/support/advised.h), as they stand in the string, and requires the
status, or whatever says it, to have them. What no test here can do is in advice_untried.txt, with the reason.

It fails for a piece that has neither, for words that stand in no string, and for a clause behind a colon, a semicolon
or a full stop whose first word is in neither VERBS nor OTHERS. --list prints each piece and where it is followed.
"""

import collections
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
VERBS = set("""
abort add allow ask begin borrow build call capture check compile configure copy create declare destroy do end find free
give install instantiate keep launch leave leak let link load look make map pass pin put record register release reload run
say see set start take try update use wait write""".split())
# "the current one, context 0x...", "; compute capability 9.0 has", "; driver 570 or newer": no advice.
OTHERS = set("""
a an and another at both by cannot capability compute constant copies CUDA cuFFT device DeviceBuffer driver elements error everything
for if in is it its memory mode mostly moved n newer no nobody none not nothing numbers nvJitLink of on one only or other
perhaps profiling PTX rows streams texels that the there they this threads to under until usually virtual
was what when where which with you""".split())
# In the middle of a text they begin a clause, at its beginning they mostly say what was being done ("copy an array").
FIRST = set("allow call declare give pass".split())
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"((?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])*\'|\s+|\w+|.', re.S)
STRONG = re.compile(r"(?:(?<=[:;]) |(?<=[a-z)]\. ))([A-Za-z]+)(?![\w=*])")
CLAUSE = re.compile(r"(?:(?<=[:;,(]) |(?<=[a-z)]\. )|(?<= or )|(?<= and ))([A-Za-z]+)(?= (?!not ))")
passed = failed = 0


def check(what, wrong):
    global passed, failed
    print("not ok:" if wrong else "ok:", what, *(f"\n  {each}" for each in wrong))
    passed, failed = passed + (not wrong), failed + bool(wrong)


def strings(path):
    """(line, text) of each string; those that stand side by side are one."""
    line, joined = 1, None
    for token in TOKEN.finditer(path.read_text()):
        if token[2] is not None:
            joined = (joined[0], joined[1] + token[2]) if joined else (line, token[2])
        elif joined and not token[0].isspace() and not token[0].startswith(("//", "/*")):
            yield joined
            joined = None
        line += token[0].count("\n")


def sources():
    for folder in ("lib", "include"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cc", ".h") and "no_cuda" not in path.parts and "image" not in path.parts:
                yield path


def pieces(text):
    """Where each piece of advice of `text` begins."""
    first = re.match(r"[a-z]+(?= )", text)
    if first and first[0] in FIRST:
        yield 0
    for clause in CLAUSE.finditer(text):
        if clause[1].lower() in VERBS:
            yield clause.start(1)


Text = collections.namedtuple("Text", "place text starts")
texts, unknown = [], []
for path in sources():
    for line, text in strings(path):
        if "\\n.balign" in text:
            continue
        place = f"{path.relative_to(root)}:{line}"
        texts.append(Text(place, text, list(pieces(text))))
        unknown += [f"{place}: \"{word}\" in \"{text}\"" for word in STRONG.findall(text)
                    if not {word, word.lower()} & (VERBS | OTHERS)]
check("the first word of each clause is known as advice or not (VERBS and OTHERS of this file)", unknown)

# {words: [where a case follows them, or why none does]}
followed = collections.defaultdict(list)
for path in sorted(p for p in (root / "test").rglob("*") if p.suffix in (".c", ".cc", ".h", ".cu")):
    if path.name == "advised.h":
        continue
    source = path.read_text()
    for found in re.finditer(r'\bAdvised\(((?:\s*"(?:\\.|[^"\\])*")+)\)', source):
        words = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', found[1]))
        followed[words].append(f"{path.relative_to(root)}:{source.count(chr(10), 0, found.start()) + 1}")
cases = set(followed)
untried = {}
for line in (root / "test/docs/advice_untried.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        words, _, reason = line.partition(" => ")
        untried[words] = reason
        followed[words].append(f"untried: {reason}")

every = [one.text for one in texts]
check("what cases and advice_untried.txt quote stands in the sources",
      [f'{followed[words][0]}: "{words}"' for words in followed if not any(words in text for text in every)])
check("each line of advice_untried.txt has a reason, and no case follows it",
      [words for words, reason in untried.items() if not reason.strip() or words in cases])

without, of_all, of_untried = [], 0, 0
for place, text, starts in texts:
    of_all += len(starts)
    for start in starts:
        by = [words for words in followed
              for at in re.finditer(re.escape(words), text) if at.start() <= start < at.end()]
        if "--list" in sys.argv:
            print(f"{place}: {text[start:][:70]}\n    " + "\n    ".join(sum((followed[words] for words in by), ["nowhere"][bool(by):])))
        if not by:
            without.append(f"{place}: \"{text[start:]}\" of \"{text}\"")
        of_untried += bool(by) and not any(words in cases for words in by)
check(f"{of_all} pieces of advice are followed by a case, or cannot be here ({of_untried})", without)
print(f"cases: {passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
