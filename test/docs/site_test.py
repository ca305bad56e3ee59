#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""site_test.py SOURCE_ROOT BUILD_ROOT COMPILER [SITE]

Makes the documentation's site, or takes the one that docs/site.py has made in SITE or in $CUGUEST_TEST_SITE, as .ci/run
has it, and reads it as a browser does:

- Doxygen and Sphinx warn of nothing;
- every page is there, and the navigation has them in the order of reading;
- every link within the site leads to a page and a place on it, and every note that is cited is a link;
- a page of a header has words before the first declaration, and no label of a contract in running text;
- every table is in a box that scrolls, every page can be dark, and no page is Doxygen's;
- in 420 pixels, where there is a Chromium: no page is wider, no title or table breaks in a word, and what scrolls shows it;
- a search finds pages and the reference;
- the reference has every public name that libclang finds in the headers (where Python has bindings for it),
  whose comment is one that Doxygen reads.
"""

import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree

root, build, compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(root / "test" / "headers"))
from flags import headers_that_can_be_included, system_includes  # noqa: E402

INCLUDE = root / "include"
NAVIGATION = """index quick_start two_files concepts guide threads bridge stream_protocols c python examples
pieces install testing cudasim not_modelled limits guarantees cost audit support
headers names reference/index notes
architecture contributing abi migration glossary changelog""".split()
# A word, and pages that a search for it has to find.
FOUND = {
    "fork": ["guarantees", "notes", "reference/cuguest/context_guard", "reference/cuguest/driver"],
    "captur": ["glossary", "reference/cuguest/objects/capture_scope"],
}
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
failures = []
checked = 0


def check(holds, what):
    global checked
    checked += 1
    if not holds:
        failures.append(what)


class Page(html.parser.HTMLParser):
    """What the checks ask of a page."""

    def __init__(self, path):
        super().__init__()
        self.open = []  # (element, classes)
        self.ids, self.links, self.menu = set(), [], []
        self.title = ""
        self.unlinked = ""  # text of the article outside of links, titles and code
        self.before = ""  # text of the article before its first declaration
        self.declared = False
        self.tables = 0  # not in a box
        self.text = path.read_text()
        self.feed(self.text)

    def within(self, element, name=""):
        return any(element == other and (not name or name in classes) for other, classes in self.open)

    def handle_starttag(self, tag, pairs):
        attributes = dict(pairs)
        classes = (attributes.get("class") or "").split()
        if tag not in VOID:
            self.open.append((tag, classes))
        self.ids.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        for key in ("href", "src"):
            if attributes.get(key):
                self.links.append(attributes[key])
        if tag == "a" and "toctree-l1" in self.open[-2][1] and self.within("div", "sidebar-tree"):
            self.menu.append(attributes["href"])
        self.tables += tag == "table" and not self.within("div", "table-wrapper")
        self.declared = self.declared or tag == "dl" and bool({"cpp", "c"} & set(classes))

    def handle_startendtag(self, tag, pairs):
        self.handle_starttag(tag, pairs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        while self.open and any(tag == other for other, _ in self.open):
            if self.open.pop()[0] == tag:
                break

    def handle_data(self, text):
        if self.within("h1") and not self.within("a"):
            self.title += text
        if self.within("article"):
            if not self.declared and self.within("p"):
                self.before += text
            if not any(self.within(tag) for tag in ("a", "pre", "code", "h2", "h3")) and not self.within("p", "rubric"):
                self.unlinked += text


def public_names():
    """The qualified names that the headers declare for embedders."""
    from clang import cindex
    from clang.cindex import AccessSpecifier, CursorKind as Kind

    scopes = {Kind.NAMESPACE, Kind.CLASS_DECL, Kind.STRUCT_DECL, Kind.CLASS_TEMPLATE, Kind.ENUM_DECL}
    named = scopes - {Kind.NAMESPACE} | {
        Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.FIELD_DECL, Kind.ENUM_CONSTANT_DECL,
        Kind.TYPE_ALIAS_DECL, Kind.VAR_DECL}
    names, texts = set(), {}

    def walk(parent, prefix):
        for cursor in parent.get_children():
            file = cursor.extent.start.file
            if file is None or not file.name.startswith(str(INCLUDE)) or "/internal/" in file.name:
                continue
            name = cursor.spelling
            if cursor.access_specifier == AccessSpecifier.PRIVATE or name in ("internal", "impl", "") or "<" in name:
                continue
            is_inline = cursor.kind == Kind.NAMESPACE and re.fullmatch(r"v\d\w*|(legacy|per_thread)_stream", name)
            if cursor.kind in named and cursor.semantic_parent == parent:
                names.add(prefix + name)
                lines = texts.setdefault(file.name, pathlib.Path(file.name).read_text().split("\n"))
                if re.match(r" *//(?!/)", lines[cursor.extent.start.line - 2]):
                    failures.append(f"{file.name}:{cursor.extent.start.line}: the comment of {name} does not begin with ///")
            if cursor.kind in scopes:
                outer = cursor.semantic_parent  # a class whose definition this has, outside of it
                of = f"{outer.spelling}::" if outer != parent and outer.kind in named else ""
                walk(cursor, prefix if is_inline else f"{prefix}{of}{name}::")

    headers = [header for header in sorted(INCLUDE.rglob("*.h")) if "internal" not in header.parts]
    text = "".join(f'#include "{header.relative_to(INCLUDE)}"\n'
                   for header in headers_that_can_be_included(headers, build, compiler))
    unit = cindex.Index.create().parse(
        "all.cc", args=["-x", "c++", "-std=c++17", f"-I{INCLUDE}", *system_includes(build)], unsaved_files=[("all.cc", text)])
    errors = [str(message) for message in unit.diagnostics if message.severity >= 3]
    if errors:
        sys.exit("\n".join(errors))
    walk(unit.cursor, "")
    return {name for name in names if name.startswith("cuguest::")}


def documented_names(directory):
    names = set()
    for path in directory.glob("*.xml"):
        for compound in xml.etree.ElementTree.parse(path).getroot().iter("compounddef"):
            names.add(compound.findtext("compoundname"))
            for member in compound.iter("memberdef"):
                name = member.findtext("qualifiedname") or member.findtext("name")
                names.add(name)
                scope = name.rpartition("::")[0] if member.get("strong") != "yes" else name
                names.update(f"{scope}::{value.findtext('name')}" for value in member.iter("enumvalue"))
    return names


def check_site(site):
    pages = {str(path.relative_to(site).with_suffix("")): Page(path) for path in sorted(site.rglob("*.html"))}
    for page in sorted((root / "docs").rglob("*.md")):
        name = str(page.relative_to(root / "docs").with_suffix(""))
        title = re.sub("[`*]", "", page.read_text().splitlines()[0].lstrip("# "))
        check(name in pages and pages[name].title == title, f"docs/{name}.md is not in the site under its title, {title}")

    index = pages["index"]
    menu = [re.sub(r"\.html$", "", link).replace("#", "index") for link in index.menu]
    check(menu == NAVIGATION, f"the navigation is {' '.join(menu)}")

    for name, page in pages.items():
        if name in ("genindex", "search"):
            continue
        for link in set(page.links):
            target = urllib.parse.urlsplit(link)
            if target.scheme or target.netloc:
                continue
            path = (site / name).parent / urllib.parse.unquote(target.path) if target.path else site / f"{name}.html"
            other = str(path.resolve().relative_to(site).with_suffix(""))
            check(path.is_file(), f"{name}: a link to {link}, which is not there")
            if target.fragment and path.suffix == ".html":
                check(urllib.parse.unquote(target.fragment) in pages[other].ids if other in pages else False,
                      f"{name}: a link to {link}, of which there is no such place")
        notes = set(re.findall(r"Note\s\[(?!Title\])[^\]]*\]", page.unlinked))
        check(not notes, f"{name}: no link: {', '.join(notes)}")
        check(not page.tables, f"{name}: a table that does not scroll")
        check("theme-toggle" in page.text, f"{name} cannot be dark")
        if name.startswith("reference/") and name != "reference/index":
            # The one that brings all others declares nothing.
            declares = page.declared or name == "reference/cuguest/cuguest"
            check(declares and len(page.before) > 30, f"{name}: no words before the first declaration")
            labels = re.findall(r"\b(?:Requires|Stack|Count|Threads|Errors|Cost|Needs|Source): {2,}.*", page.unlinked)
            check(not labels, f"{name}: in running text: {labels}")
    headers = [header.relative_to(INCLUDE).with_suffix("") for header in INCLUDE.rglob("*.h")]
    for header in headers:
        check("internal" in header.parts or f"reference/{header}" in pages, f"no page of {header}.h")
    styles = (site / "_static" / "styles" / "furo.css").read_text()
    check(re.search(r"prefers-color-scheme: ?dark\)[^@]*--color-background-primary", styles), "a dark system's pages are light")
    check("import " not in (site / "_static" / "scripts" / "furo.js").read_text()[:200], "a script that is a module")
    stock = [path.name for path in site.rglob("*")
             if "doxygen" in path.name or path.name in ("annotated.html", "classes.html", "files.html")]
    stock += [name for name, page in pages.items() if re.search(r"generator\" content=\"Doxygen|doxygen\.css", page.text)]
    check(not stock, f"Doxygen's: {stock}")

    search = (site / "searchindex.js").read_text()
    search = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\);?\s*", search, re.S)[1])
    for word, expected in FOUND.items():
        found = [search[where].get(word, []) for where in ("terms", "titleterms")]
        names = [search["docnames"][at] for pages in found for at in (pages if isinstance(pages, list) else [pages])]
        for name in expected:
            check(name in names, f"a search for {word} does not find {name}")
    objects = {entry[-1] for entries in search["objects"].values() for entry in entries}
    for name in ("cuguest::ContextGuard", "cuguest_guard_enter"):
        check(name in objects, f"a search does not find {name}")


def check_narrow(site):
    """1 if there is no browser."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("skipped: narrow screens: no Chromium")
        return 1
    pages = [page.as_uri() for page in sorted(site.rglob("*.html"))]
    with tempfile.TemporaryDirectory(prefix="cuguest-narrow-") as folder:
        viewer = pathlib.Path(folder) / "narrow.html"
        text = (root / "test" / "docs" / "narrow.html").read_text()
        viewer.write_text(text.replace("pages = PAGES", f"pages = {json.dumps(pages)}"))
        shown = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", f"--user-data-dir={folder}",
             "--virtual-time-budget=600000", "--dump-dom", viewer.as_uri()], capture_output=True, text=True, timeout=400)
    lines = html.unescape("".join(re.findall(r"<pre>(.*?)</pre>", shown.stdout, re.S))).splitlines()
    seen = {line[5:] for line in lines if line.startswith("seen ")}
    for page in pages:
        check(page in seen, f"{page} was not shown: {shown.stderr[-500:]}")
    for line in lines:
        check(line.startswith("seen "), f"in 420 pixels: {line.replace(site.as_uri() + '/', '')}")
    return 0


def check_names(directory):
    """1 if there is no libclang."""
    try:
        names = public_names()
    except (ImportError, OSError) as error:
        print(f"skipped: public names: no libclang ({error}): python3-clang")
        return 1
    documented = documented_names(directory)
    for name in sorted(names):
        check(name in documented, f"the reference does not have {name}")
    check(len(names) >= 500, f"libclang finds only {len(names)} public names")
    return 0


with tempfile.TemporaryDirectory(prefix="cuguest-site-") as name:
    made = sys.argv[4] if len(sys.argv) > 4 else os.environ.get("CUGUEST_TEST_SITE")
    output = pathlib.Path(made or name).resolve()
    if made is None:
        run = subprocess.run([sys.executable, root / "docs" / "site.py", output, "test"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(run.returncode == 0, f"docs/site.py: exit status {run.returncode}\n{run.stdout}")
    skipped = 0
    if (output / "html" / "index.html").exists():
        check_site(output / "html")
        skipped = check_names(output / "xml") + check_narrow(output / "html")
    else:
        check(False, "there is no site")

for failure in failures:
    print("not ok:", failure)
print(f"cases: {checked - len(failures)} passed, {len(failures)} failed, {skipped} skipped")
sys.exit(1 if failures else 0)
