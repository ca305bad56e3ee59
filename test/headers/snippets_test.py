#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""snippets_test.py SOURCE_ROOT BUILD_ROOT COMPILER [NVCC]

Compiles the code that the comments of the public headers show: each block of comment lines that
are indented by three blanks or more, follow an empty one, and end a statement or open a brace. And
the C++ blocks of README.md, CHANGELOG.md and docs/. snippets.txt declares what a reader would have
around them. All are one file, each in a namespace of its own, and their errors name the line of the
header or page; what launches a kernel is for nvcc. A complete program is a file of its own.

`...` may stand where a statement or the last arguments of a call are left out (then the call needs
an overload that takes `Rest`), and the end of a function may be left out.
"""

import pathlib
import re
import subprocess
import sys

from flags import for_nvcc, headers_that_can_be_included, system_includes

root, build, compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3]
nvcc = sys.argv[4] if len(sys.argv) > 4 else None
INCLUDE = root / "include"
# By the folder of the header.
NAMESPACES = {"runtime": "runtime", "libraries": "runtime", "testing": "testing"}


def snippets(header):
    """(line, text) of each."""
    lines = header.read_text().splitlines()
    at = 1
    while at < len(lines):
        begin = at
        if re.match(r" *///?$", lines[at - 1]):
            while at < len(lines) and re.match(r" *///?( {3,}\S.*)?$", lines[at]):
                at += 1
        text = "\n".join(re.sub(r"^ *///?( {3})?", "", line) for line in lines[begin:at])
        if re.search(r"[;{] *(//.*)?$", text, re.M):
            yield begin + 1, text
        at = max(at, begin + 1)


def page_snippets(page):
    """(line, text) of each C++ block of a page, without what it includes of ours."""
    text = page.read_text()
    for block in re.finditer(r"^```cpp\n(.*?)^```", text, re.M | re.S):
        yield text.count("\n", 0, block.start(1)) + 1, block[1]


def is_declarations(text):
    """Whether a block of a page is functions, rather than statements."""
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "//"))]
    opens = re.match(r"(?!if|for|while|\{)[\w:<>*& ]+\(.*|(struct|class|using|extern) ", lines[0])
    return bool(opens) and re.match(r"[})]", lines[-1]) is not None


def sections():
    """What snippets.txt says before its first header, and {header: what it says of it}."""
    common, *rest = re.split(r"^//// (\S+)\n", (pathlib.Path(__file__).parent / "snippets.txt").read_text(), flags=re.M)
    return common, dict(zip(rest[::2], rest[1::2]))


def complete(text):
    text = re.sub(r"^(\s*)\.\.\.", r"\1;", text, flags=re.M)
    text = re.sub(r"\)\s*\.\.\.$", ") {}", text, flags=re.M)
    text = re.sub(r",\s*\.\.\.\)(?! *\{)", ", Rest())", text)
    code = re.sub(r"//.*", "", text)
    return text + "}" * (code.count("{") - code.count("}"))


def as_program(number, header, line, text, around):
    text = complete(text)
    place_of_page = f'#line {line} "{header}"\n'
    if header.endswith(".md"):
        text = re.sub(r"^#include .*", "", text, flags=re.M)
        body = text if is_declarations(text) else f"Anything Run() {{\n{place_of_page}{text}\nreturn 0;\n}}"
        using = "using namespace cuguest;\nusing namespace cuguest::testing;\n"
        return f"namespace snippet_{number} {{\n{using}{around}\n{place_of_page}{body}\n}}\n"
    place = f'#line {line} "{header}"\n'
    if re.search(r"^template|^struct cuguest::", text, re.M):  # specialises a template of ours
        return f"{around}\n{place}{text}\n"
    # A function may come first, up to the brace that closes it.
    function = re.match(r"(?:[A-Z_]+|(?!if|while|for)[\w:<>*&]+ [\w:]+)\([^;={}]*\)(?: noexcept)? \{.*(?:\n.*)*?(?:\n\}.*|$)", text)
    function = f"{place}{function.group()}\n" if function else ""
    rest = text[len(function) - len(place) - 1 if function else 0:].strip("\n")
    if rest:
        place = f'#line {line + text.count(chr(10)) - rest.count(chr(10))} "{header}"\n'
        rest = f"Anything Run() {{\n{place}{rest}\nreturn 0;\n}}\n"
    inner = next((inner for folder, inner in NAMESPACES.items() if f"/{folder}/" in header), "")
    spaces = "using namespace cuguest;\n" + (f"using namespace cuguest::{inner};\n" if inner else "")
    return f"namespace snippet_{number} {{\n{spaces}{around}\n{function}{rest}}}\n"


def compile_all(command, includes, programs):
    if not programs:
        return 0
    run = subprocess.run(
        [*command, "-std=c++17", f"-I{INCLUDE}", *includes, "-"],
        input=common + "".join(programs), capture_output=True, text=True, cwd=build)
    if run.returncode:
        print(run.stderr)
    return len(set(re.findall(r"^(\S+?)[:(]\d+.*\berror", run.stderr, re.M))) or int(run.returncode != 0)


def compile_program(page, line, text):
    run = subprocess.run(
        [compiler, "-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-std=c++17", f"-I{INCLUDE}",
         *system_includes(build), "-"], input=f'#line {line} "{page}"\n{text}', capture_output=True, text=True, cwd=build)
    print(run.stderr, end="")
    return int(run.returncode != 0)


common, about = sections()
headers = headers_that_can_be_included(sorted(INCLUDE.rglob("*.h")), build, compiler)
common = "".join(f'#include "{header.relative_to(INCLUDE)}"\n' for header in headers) + common
host, device, whole, used = [], [], [], set()
for header in headers:
    name = str(header.relative_to(INCLUDE / "cuguest"))
    for line, text in snippets(header):
        used.add(name)
        programs = device if "<<<" in re.sub(r"//.*", "", text) else host
        programs.append(as_program(len(host) + len(device), f"include/cuguest/{name}", line, text, about.get(name, "")))
for page in [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").glob("*.md"))]:
    name = str(page.relative_to(root))
    for line, text in page_snippets(page):
        if re.search(r"^int main\(", text, re.M):
            whole.append((name, line, text))
            continue
        used.add(name)
        host.append(as_program(len(host) + len(device), name, line, text, about.get(name, "")))
installed = {str(header.relative_to(INCLUDE / "cuguest")) for header in headers}
stale = [name for name in about if name not in used and (
    name in installed or not ((INCLUDE / "cuguest" / name).is_file() or (root / name).is_file()))]
for name in stale:
    print(f"not ok: snippets.txt speaks of {name}, which shows no code")

failed = len(stale) + compile_all([compiler, "-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused"],
                                  system_includes(build), host)
failed += sum(compile_program(*program) for program in whole)
skipped = 0
if nvcc:
    failed += compile_all([nvcc, "-x", "cu", "-cuda", "-o", "/dev/null"], for_nvcc(system_includes(build)), device)
else:
    skipped = len(device)
    print("skipped: snippets that launch a kernel: no nvcc")
total = len(host) + len(device) + len(whole)
print(f"cases: {max(0, total - failed - skipped)} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or total < 40 else 0)
