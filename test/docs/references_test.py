#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""references_test.py SOURCE_ROOT

What README.md, docs/, those of the rooms, the sources and the build refer to exists: files of the repository in
backquotes, the files that comments name, the notes that they cite, links between pages, in the index one to each, every
example, the code of docs/facts, docs/adoption and docs/three_jobs.md in its program, one test case in each cell of the table of conversions, each owner
that the library reports as owed in the table of docs/limits.md, and each variable of the environment that is read in that of
docs/support.md.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
# Each page of these belongs to a program of the same name, in the folder of examples/ of the same name; a page of recipes, if it
# has code, to a header, or to NAME_before.h and NAME_after.h.
with_program = {folder: sorted((root / "docs" / folder).glob("*.md")) for folder in ("facts", "adoption")}
recipes = sorted((root / "docs" / "recipes").glob("*.md"))
rooms = sorted(page for pattern in ("*/README.md", "objects/*/README.md") for page in (root / "lib").glob(pattern)
               if not page.parent.is_symlink())
pages = [root / "README.md", *sorted((root / "docs").glob("*.md")), *sum(with_program.values(), []), *recipes, *rooms]
failures = []
checked = 0


def check(holds, what):
    global checked
    checked += 1
    if not holds:
        failures.append(what)


# `dir/file`: a path of the repository, or of a header as it is included.
PLACES = ("test", "lib", "include", "docs", "examples", "kernels", "cuguest", "subprojects", ".ci")
for page in pages:
    text = page.read_text()
    where = page.relative_to(root)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for name in sorted(set(re.findall(r"`((?:%s)/[^`\s]*)`" % "|".join(map(re.escape, PLACES)), prose))):
        base = root / "include" if name.startswith("cuguest/") else root
        check(any(base.glob(name.rstrip("/"))), f"{where}: there is no {name}")
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target:
            file, _, heading = target.partition("#")
            linked = page.parent / file if file else page
            check(linked.exists(), f"{where}: a link to {file}, which does not exist")
            if heading and linked.exists():
                headings = re.findall(r"^#+ (.*?)(?: \{#.*)?$", linked.read_text(), re.M)
                anchors = {re.sub(r"[^\w -]", "", words).lower().replace(" ", "-") for words in headings}
                check(heading in anchors, f"{where}: a link to {target}, which has no such heading")
    if page.parent == root / "docs" and page.name != "index.md":
        check(f"]({page.name})" in (root / "docs" / "index.md").read_text(), f"docs/index.md has no link to {page.name}")
check("](docs/index.md)" in (root / "README.md").read_text(), "README.md has no link to docs/index.md")

named = {}
for folder in ("include", "lib", "test", "examples"):
    for source in (root / folder).rglob("*"):
        # The release before has paths of its own.
        if source.suffix in (".h", ".c", ".cc") and "release_0_1" not in source.parts or source.name == "meson.build":
            for name in re.findall(r"(?<![\w/.])((?:cudasim/)?(?:test|lib)/[\w/]+\.(?:cc|c|h|py))\b", source.read_text()):
                named.setdefault(name, source.relative_to(root))
for name, source in sorted(named.items()):
    folder = root / "subprojects" if name.startswith("cudasim/") else root
    check((folder / name).exists(), f"{source} names {name}, which does not exist")

# What a comment cites as a Note is a section of docs/notes.md, or a note with its title underlined in a source.
titles = set(re.findall(r"^## (.*)$", (root / "docs" / "notes.md").read_text(), re.M))
cited = {}
for folder in ("include", "lib", "test", "examples", "kernels", "subprojects"):
    for source in (root / folder).rglob("*"):
        if source.suffix in (".h", ".c", ".cc", ".cu", ".py") and "release_0_1" not in source.parts:
            text = source.read_text()
            titles.update(re.findall(r"^//+ Note \[(.*)\]\n//+ ~+$", text, re.M))
            for title in re.findall(r"\bNote\s\[([A-Z][^\]\n]*)\]", re.sub(r"\s*\n\s*(?://+|#)?\s*", " ", text)):
                cited.setdefault(title, source.relative_to(root))
for title, source in sorted(cited.items()):
    check(title in titles, f"{source} cites Note [{title}], which does not exist")

# Every header is in the table of headers, with its tier.
tiers = {}
for tier, names in re.findall(r"^\| (\w) \| ([^|]*) \|", (root / "docs" / "headers.md").read_text(), re.M):
    tiers.update(dict.fromkeys(re.findall(r"`([\w/.]+)`", names), tier))
for header in sorted((root / "include" / "cuguest").rglob("*.h")):
    name = str(header.relative_to(root / "include" / "cuguest"))
    if "internal/" not in name:
        tier = re.search(r"\btier: (\w)", header.read_text())[1]
        check(tiers.pop(name, None) == tier, f"docs/headers.md does not list {name} as of tier {tier}")
for name in tiers:
    check(False, f"docs/headers.md lists {name}, which does not exist")

# Every example is in the table of examples.
listed = (root / "docs" / "examples.md").read_text()
run = re.findall(r"^  \w+/(\w+)$", (root / "examples" / "run").read_text(), re.M)
programs = {line for line in re.findall(r"^  '(\w+)': \{", (root / "examples" / "meson.build").read_text(), re.M)}
for program in sorted(programs):
    check(f"`{program}`" in listed, f"docs/examples.md does not list {program}")
    check(program in run, f"examples/run does not run {program}")
for name in re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)\|", listed, re.M))):
    check(name in programs, f"docs/examples.md lists {name}, which is no example")

for page in pages:
    for names in re.findall(r"\bExamples?:((?:\s+`\w+`[,.]?)+)", page.read_text()):
        for name in re.findall(r"`(\w+)`", names):
            check(name in programs, f"{page.relative_to(root)} names the example {name}, which does not exist")

# Such a page shows code of its program, with other blanks at most. Code of other libraries is in blocks of `c++`.
programs_of = {page: root / "examples" / folder / f"{page.stem}.cc" for folder, found in with_program.items() for page in found}
programs_of[root / "docs" / "three_jobs.md"] = root / "examples" / "libraries" / "three_jobs.cc"
for folder, found in with_program.items():
    check(found, f"there are no pages in docs/{folder}")
for page in programs_of:
    check(f"({page.relative_to(root / 'docs')})" in listed, f"docs/examples.md has no link to {page.relative_to(root)}")
index = (root / "docs" / "recipes" / "index.md").read_text()
for page in recipes:
    check(page.name == "index.md" or f"({page.name})" in index, f"docs/recipes/index.md has no link to {page.name}")
programs_of = {page: [program] for page, program in programs_of.items()}
for page in recipes:
    if "\n```c" in page.read_text():
        pair = sorted((root / "examples" / "recipes").glob(f"{page.stem}_*.h"))
        programs_of[page] = pair or [root / "examples" / "recipes" / f"{page.stem}.h"]
for page, programs_here in programs_of.items():
    name = page.relative_to(root / "docs")
    for program in programs_here:
        check(program.is_file(), f"docs/{name}: there is no {program.relative_to(root)}")
    source = " ".join(" ".join(program.read_text().split()) for program in programs_here if program.is_file())
    blocks = re.findall(r"^```(?:c|cpp)\n(.*?)^```", page.read_text(), re.M | re.S)
    check(blocks, f"docs/{name} shows no code")
    for block in blocks:
        check(" ".join(block.split()) in source, f"docs/{name}: {block.splitlines()[0]} ... is not in its program")

cases = set()
for source in [*(root / "test" / "runtime").glob("*_test.cc"), *(root / "test" / "libraries").glob("*_test.cc")]:
    cases.update(re.findall(r"^BOOST_AUTO_TEST_CASE\((\w+)", source.read_text(), re.M))
# What the toolkit does not have.
NOTHING = ("texture and surface reference", "no runtime call takes", "the runtime has none", "no conversion")
cells = 0
for row in re.findall(r"^\|(.*)\|$", (root / "docs" / "bridge.md").read_text().split("\n## ")[0], re.M)[2:]:
    object_name, *directions = row.split("|")
    for cell in directions:
        cells += 1
        tests = [word for word in re.findall(r"`([\w/.]+)`", cell) if word in cases or (root / word).is_file()]
        check(tests or any(words in object_name + cell for words in NOTHING),
              f"docs/bridge.md: no test of {object_name.strip()}: {cell.strip()}")

# "Every case is listed" (docs/guarantees.md): what a source that owes something calls it, as "a Stream", stands in the table.
section = (root / "docs" / "limits.md").read_text().split("\n## What is let go without being destroyed\n")[1].split("\n## ")[0]
let_go = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)\|", section, re.M))))
OWES = re.compile(r"\b(?:GiveBackOrOwe|ReleasePrimaryOrOwe|ReportIncident\(\s*Incident::Kind::kOwed)\b")
owing = 0
for folder in ("include", "lib"):
    for source in sorted((root / folder).rglob("*")):
        if source.suffix not in (".h", ".cc") or source.parent / source.stem == root / "lib" / "share" / "owed":  # for any owner
            continue
        code = re.sub(r"//.*", "", source.read_text())
        if OWES.search(code):
            owing += 1
            owners = re.findall(r'"an? (\w+)"', code)
            check(owners, f"{source.relative_to(root)} owes something and does not say what")
            for owner in owners:
                check(owner in let_go, f"docs/limits.md does not list {owner} as let go, which {source.relative_to(root)} reports")

# Each variable of the environment that a product reads stands in the table of docs/support.md, and each of the table is read.
# What is loaded into somebody's program reads it by secure_getenv alone.
LOADED = ("include", "lib", "subprojects/cuguest-audit/audit", "subprojects/cudaimage", "subprojects/cudasim")
NO_PRODUCT = {"test", "conformance", "scoreboard", "subprojects"}
COMMANDS = ("subprojects/cuguest-audit/audit/command", "subprojects/cudasim/command")
READS = re.compile(r'(?:getenv|IsSet)\("(\w+)"|k\w*Variable\[\] = "(\w+)"|\bSetting\("(\w+)"\)|^_REPORTS = "(\w+)"', re.M)
read = {}
for folder in (*LOADED, "subprojects/pycuguest/src/cuguest"):
    for source in (root / folder).rglob("*"):
        if source.suffix in (".h", ".cc", ".py") and not NO_PRODUCT & set(source.relative_to(root / folder).parts):
            name, code = str(source.relative_to(root)), source.read_text()
            for plain, constant, setting, reports in READS.findall(code):
                read.setdefault(plain or constant or reports or f"CUDASIM_{setting}", name)
            check(name.startswith(COMMANDS) or not re.search(r"(?<!secure_)\bgetenv\(", code),
                  f"{name} reads the environment of a program with more privileges than its caller: secure_getenv")
table = (root / "docs" / "support.md").read_text().split("\n| read by | variable |")[1].split("\n\n")[0]
told = set(re.findall(r"`([A-Z]\w+)`", "".join(row.split("|")[2] for row in table.splitlines()[2:])))
for variable, source in sorted(read.items()):
    check(variable in told, f"docs/support.md does not list {variable}, which {source} reads")
for variable in sorted(told - set(read)):
    check(False, f"docs/support.md lists {variable}, which nothing reads")

for failure in failures:
    print("not ok:", failure)
print(f"cases: {checked - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures or not cells or not programs or not named or not cited or not owing or not read else 0)
