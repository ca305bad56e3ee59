#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""filter.py HEADER: prints a header as Doxygen is to read it, its comments as reStructuredText.

The headers' comments are plain text, to be read in an editor:

    /// Stack:   never touched.                    a label of the contract
    /// Errors:  those of Driver::Get(), and
    ///          kNotFound  no such device         a code, and when it is given
    ///
    ///   code, or a table                         after an empty line, two blanks further in

Here labels become a list, codes a list in it, code and tables keep their blanks, and a note or
another comment of its own belongs to the file.
"""

import itertools
import pathlib
import re
import sys

LABELS = "Requires|Stack|Count|Threads|Errors|Cost|Needs|Source|Post|Fork|Captures"
LABEL = re.compile(rf"((?:{LABELS})(?:(?:,| and) [\w ]+?)*):(?= |$)")
CODE = re.compile(r" *(\S+(?: \S+)*) {2,}(\S.*)")
NAMES = re.compile(r"[\w~:<>]+(?:\(\))?$")


def in_rst(text):
    """Without what reStructuredText would take for markup, but for `code`."""
    parts = re.split(r"`([^`]*)`", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\*|]|_(?=\W|$))", r"\\\1", parts[i])
        if i:
            parts[i] = re.sub(r"^(?=\w)", r"\\ ", parts[i])
    return "".join(f"``{part}``" if i % 2 else part for i, part in enumerate(parts))


def indent(line):
    return len(line) - len(line.lstrip())


def contract(lines):
    """A label and what belongs to it, as an entry of a field list."""
    label = LABEL.match(lines[0])
    result = [f":{label[1]}:"]
    code_column = None
    names = ""
    for line in [" " * label.end() + lines[0][label.end():], *lines[1:]]:
        code = CODE.match(line)
        if code:
            code_column = indent(line)
            result += ["", f"  {in_rst(names + code[1])}", f"    {in_rst(code[2])}"]
            names = ""
        elif re.fullmatch(r" *[A-Z_]+(, [A-Z_]+)*,", line):
            names = line.strip() + " "  # and others with the same text
        elif code_column is not None and indent(line) > code_column:
            result.append(f"    {in_rst(line.strip())}")
        else:
            if code_column is not None:
                result.append("")
                code_column = None
            result.append(f"  {in_rst(line.strip())}")
    return result


def prose(lines):
    """The lines of a comment, as reStructuredText."""
    result = []
    in_list = False
    i = 0
    while i < len(lines):
        line = lines[i]
        note = re.match(r"Note (\[.*\])$", line)
        if note and i + 1 < len(lines) and re.match(r"~+$", lines[i + 1]):
            result += [f".. rubric:: Note {note[1]}", ""]
            i += 2
        elif line.startswith("  ") and (i == 0 or not lines[i - 1].strip()):
            end = i
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith("  ")):
                end += 1
            block = "\n".join(lines[i:end]).rstrip().split("\n")
            language = "cpp" if re.search(r"[;{}]$|[;{}] +/[/*]|^#", "\n".join(block), re.M) else "text"
            result += ["", f".. code-block:: {language}", "", *(f"  {part}" for part in block), ""]
            i = end
        elif LABEL.match(line):
            end = i + 1
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
            result += ["", *contract(lines[i:end]), ""]
            i = end
        else:
            if line.strip():
                in_list = bool(re.match(r"- ", line)) or in_list and line.startswith("  ")
            result.append(("  " if in_list and line.startswith("  ") else "") + in_rst(line.strip()))
            i += 1
    return result


def comment(lines, is_alone):
    lines = [re.sub(r"^ *///( |$)", "", line) for line in lines]
    is_file = is_alone
    if lines[0].startswith("\\file"):
        is_file = True
        lines[0] = lines[0][len("\\file"):].strip()
    elif len(lines) > 1 and NAMES.match(lines[0]) and not lines[1].strip():
        lines = lines[2:]  # the name of what follows
    text = "\n".join(prose(lines))
    return "/** {}\n\\verbatim embed:rst\n{}\n\\endverbatim */".format("\\file" if is_file else "", text)


def filtered(text, stem):
    # Doxygen would take deduction guides for functions.
    text = re.sub(r"^(template <.*>\n)?\w+\(.*\) -> \w+<.*>;\n", "", text, flags=re.M)
    # Since 1.9.7 it has an empty name for an enumeration without one, which Sphinx refuses.
    numbers = itertools.count(1)
    text = re.sub(r"^enum \{", lambda _: f"enum {stem}_constants_{next(numbers)} {{", text, flags=re.M)
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        begin = i
        while i < len(lines) and re.match(r" *///(?!<)", lines[i]):
            i += 1
        if i > begin:
            is_alone = i == len(lines) or not lines[i].strip() or lines[begin].startswith("/// Note [")
            yield comment(lines[begin:i], is_alone)
        else:
            yield lines[i]
            i += 1


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write("\n".join(filtered(file.read(), pathlib.Path(sys.argv[1]).stem)))
