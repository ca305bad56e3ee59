#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""filter.py FILE: prints a header or a page as Doxygen is to read it, line by line.

The headers' comments are plain text, to be read in an editor:

    /// Stack:   never touched.                    a label of the contract
    /// Errors:  those of Driver::Get(), and
    ///            kNotFound  no such device       a code, and when it is given
    ///
    ///   code, or a table                         after an empty line, three blanks further in

Here labels become bold, codes begin a line, code and tables keep their blanks, and a note or
another comment of its own belongs to the file.
"""

import re
import sys

LABELS = "Stack|Count|Threads|Errors|Cost|Needs|Source|Post|Fork|Captures"
LABEL = re.compile(rf"((?:{LABELS})(?:(?:,| and) [\w ]+?)*):(?= |$)")
CODE = re.compile(r"( *)((?:k[A-Z]\w*|(?:CUDA|CUBLAS|CUFFT|cuda)\w+|_[A-Z_]{4,})(?:, _?[A-Z_]\w+)*,?) {2,}(\S.*)")
NAMES = re.compile(r"[\w~:<>]+(?:\(\))?$")


def in_html(text):
    """Without what Doxygen would take for a command or a tag."""
    parts = re.split(r"(`[^`]*`)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\@&<>#%])", r"\\\1", parts[i])
        parts[i] = parts[i].replace("*", "\\*")
    return "".join(parts)


def is_displayed(lines, i):
    """Whether code or a table begins at line `i`."""
    return lines[i].startswith("  ") and (i == 0 or not lines[i - 1].strip())


def displayed_end(lines, i):
    while i < len(lines) and (not lines[i].strip() or lines[i].startswith("  ")):
        i += 1
    while not lines[i - 1].strip():
        i -= 1
    return i


def prose(lines):
    """The lines of a comment, as Markdown with Doxygen's commands."""
    result = []
    labelled = False
    text_column = 0
    i = 0
    while i < len(lines):
        line = lines[i]
        note = re.match(r"Note (\[.*\])$", line)
        label = LABEL.match(line)
        code = CODE.match(line) if labelled else None
        if not line.strip():
            labelled = False
            result.append("")
        elif line.strip() == "\\file":
            result.append("\\file")
        elif re.match(r"~+$", line):
            result.append("")
        elif note:
            result.append(f"\\par Note {in_html(note[1])}")
        elif is_displayed(lines, i) and not labelled:
            end = displayed_end(lines, i)
            block = lines[i:end]
            block[0] = "\\verbatim\n" + block[0]
            block[-1] += "\n\\endverbatim"
            result.extend(block)
            i = end
            continue
        elif label:
            labelled = True
            text_column = label.end()
            begin = "<br>" if result and result[-1] else ""
            result.append(f"{begin}<b>{label[1]}:</b> {in_html(line[label.end():].strip())}")
        elif code:
            text_column = code.start(3)
            result.append(f"<br>&emsp;<tt>{code[2]}</tt>&emsp;{in_html(code[3])}")
        elif labelled and len(line) - len(line.lstrip()) < text_column - 8:
            text_column = len(line) - len(line.lstrip())
            result.append("<br>" + in_html(line.strip()))
        else:
            result.append(in_html(line.strip()))
        i += 1
    return result


def comment(lines, is_alone):
    lines = [re.sub(r"^ *///( |$)", "", line) for line in lines]
    if is_alone and "\\file" not in lines:
        lines.insert(0, "\\file")
        lines.insert(1, "")
    elif len(lines) > 1 and NAMES.match(lines[0]) and not lines[1].strip():
        lines = lines[2:]  # the name of what follows
    return "/** " + "\n".join(prose(lines)) + " */"


def filtered(text):
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


def page(text):
    """Without links to what is no page of the site."""
    return re.sub(r"\[([^\]]*)\]\((\.\./(?!subprojects/cudasim/README)[^)]*)\)", r"\1", text)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        content = file.read()
    sys.stdout.write(page(content) if sys.argv[1].endswith(".md") else "\n".join(filtered(content)))
