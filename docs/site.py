#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""site.py OUTPUT VERSION: makes the documentation's site, OUTPUT/html/. A warning is an error.

What Sphinx reads is written below OUTPUT/source/: the Markdown pages, a page for each header, which Breathe
fills from Doxygen's XML, and a page for each source of the examples. PAGES is the order of reading.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {
    "Begin": ["Start page <self>", "quick_start", "two_files", "concepts", "guide", "threads", "bridge", "stream_protocols", "c", "python", "examples"],
    "Rely on it": ["pieces", "install", "testing", "cudasim", "not_modelled", "limits", "guarantees", "cost", "audit", "support"],
    "Reference": ["headers", "names", "reference/index", "notes"],
    "The project": ["architecture", "contributing", "abi", "migration", "glossary", "changelog"],
}
# Pages below another one.
BELOW = {
    "guide": ["recipes/index"],
    "recipes/index": ["recipes/do_you_need_to_enter", "recipes/driver_table", "recipes/small_read", "recipes/caches", "recipes/retain",
                      "recipes/pair"],
    "examples": ["adoption/communication_library", "adoption/codec", "adoption/media_framework", "adoption/simulation_engine", "three_jobs",
                 "facts/runtime_context", "facts/kernel_parameters", "facts/memory_of_both_apis", "sources/index"],
    "support": ["security", "release_report"],
}
# Of a header and of a class: the order of what it has.
SECTIONS = ("briefdescription detaileddescription innerclass innernamespace define typedef enum func var public-type "
            "public-static-func public-func public-attrib public-static-attrib friend")
# The last three are the template's.
LANGUAGES = {".c": "c", ".cc": "cpp", ".cu": "cuda", ".h": "cpp", ".build": "meson", ".map": "text", ".txt": "cmake"}


def toctree(entries, *options):
    return "\n".join([".. toctree::", *(f"   :{option}" for option in options), "", *(f"   {entry}" for entry in entries), ""])


def in_markdown(directive):
    return f"\n```{{eval-rst}}\n{directive}```\n"


def titled(title):
    return f"{title}\n{'=' * len(title)}\n\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def headers():
    """Of each public header the name of its page: how it is included."""
    for folder in (ROOT / "include", ROOT / "subprojects" / "cudasim" / "include"):
        for header in sorted(folder.rglob("*.h"), key=lambda path: (len(path.parts), path)):
            if "internal" not in header.parts:
                yield header.relative_to(folder)


def example_sources():
    """The examples' sources and what is included by them, and the template's build files: the name and the path of each."""
    for path in sorted((ROOT / "examples").glob("*/**/*")):
        if path.suffix in LANGUAGES:
            yield str(path.relative_to(ROOT / "examples")), path


def write_pages(source):
    """The Markdown pages. Those of other folders are beside those of docs/."""
    pages = {path.relative_to(ROOT / "docs"): path for path in (ROOT / "docs").rglob("*.md")}
    pages[pathlib.Path("changelog.md")] = ROOT / "CHANGELOG.md"
    pages[pathlib.Path("security.md")] = ROOT / "SECURITY.md"
    pages[pathlib.Path("release_report.md")] = ROOT / "packaging" / "release_report.md"
    pages[pathlib.Path("cudasim.md")] = ROOT / "subprojects" / "cudasim" / "README.md"
    pages[pathlib.Path("not_modelled.md")] = ROOT / "subprojects" / "cudasim" / "NOT_MODELLED.md"
    at = {path: name for name, path in pages.items()} | {ROOT / "README.md": pathlib.Path("index.md")}
    at |= {path: pathlib.Path("sources") / f"{name}.rst" for name, path in example_sources()}
    for name, path in pages.items():
        def moved(link):
            target = (path.parent / link[1]).resolve()
            return f"]({os.path.relpath(at[target], name.parent)}{link[2] or ''})" if target in at else link[0]

        text = re.sub(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)", moved, path.read_text())
        if name == pathlib.Path("index.md"):
            text += "".join(in_markdown(toctree(entries, f"caption: {caption}", "hidden:"))
                            for caption, entries in PAGES.items())
        below = BELOW.get(name.with_suffix("").as_posix(), [])
        text += in_markdown(toctree([os.path.relpath(page, name.parent) for page in below], "hidden:")) if below else ""
        write(source / name, text)
    for picture in "audit_page.png", "audit_trace.svg", "growth.svg":
        shutil.copy(ROOT / "docs" / picture, source)


# The products, by the folder of their headers.
PRODUCTS = {
    "cuguest": "Contexts", "cuguest/objects": "Streams, memory, device code, launches and graphs",
    "cuguest/runtime": "The bridge to the CUDA runtime", "cuguest/libraries": "Libraries of the toolkit",
    "cuguest/testing": "Tests", "cudasim": "The simulation",
}


def write_reference(source):
    names = [str(header) for header in headers()]
    text = titled("API") + "What each header declares. " \
        ":doc:`Headers <../headers>` says which one to include, :doc:`Names <../names>` which one has a name.\n\n"
    for folder, caption in PRODUCTS.items():
        of_it = [name for name in names if str(pathlib.Path(name).parent) == folder]
        entries = [f"{name.removeprefix('cuguest/')} <{name.removesuffix('.h')}>" for name in of_it]
        text += toctree(entries, f"caption: {caption}", "maxdepth: 1") + "\n"
    write(source / "reference" / "index.rst", text)
    for name in names:
        write(source / "reference" / f"{name.removesuffix('.h')}.rst",
              titled(name) + f".. doxygenfile:: {name}\n   :sections: {SECTIONS}\n")


def write_sources(source):
    write(source / "sources" / "index.rst", titled("Sources of the examples")
          + toctree([name for name, _ in example_sources()], "maxdepth: 1"))
    for name, path in example_sources():
        write(source / "sources" / f"{name}.rst",
              titled(name) + f".. literalinclude:: {path.name}\n   :language: {LANGUAGES[path.suffix]}\n")
        shutil.copy(path, source / "sources" / name)


def main(output, version):
    output = pathlib.Path(output).resolve()
    source, xml = output / "source", output / "xml"
    for folder in (source, xml, output / "html", output / "doctrees"):
        shutil.rmtree(folder, ignore_errors=True)
    write_pages(source)
    write_reference(source)
    write_sources(source)
    doxyfile = (ROOT / "docs" / "Doxyfile.in").read_text().replace("@OUTPUT@", str(output)).replace("@SOURCE@", str(ROOT))
    (output / "Doxyfile").write_text(doxyfile)
    subprocess.run(["doxygen", output / "Doxyfile"], check=True)
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-c", ROOT / "docs",
         "-d", output / "doctrees", "-D", f"version={version}", "-D", f"breathe_projects.cuguest={xml}",
         source, output / "html"]).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
