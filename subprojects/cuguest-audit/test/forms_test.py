#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""forms_test.py COMMAND HOST HOSTILE PLUGIN NVML SIMDIR SOURCE_ROOT

The forms of cuguest-audit's report: a page for a browser, SARIF, colours, findings as they happen, the trace and the log.
"""

import html.parser
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import schema
from checks import check, done, skip
from command_runs import (command, ENVIRONMENT, FAULTS, fixtures, folder, host, hostile, knows_lines, line_of, nvml,
                          plugin, report_schema, root, Run, simdir)

# A page for a browser.
class Page(html.parser.HTMLParser):
    """That each element is closed, in its order; what it has, and what of it is linked."""

    EMPTY = {"meta", "rect", "line", "circle"}

    def __init__(self, text):
        super().__init__()
        self.open, self.errors, self.ids, self.links, self.tags, self.titles = [], [], [], [], [], []
        self.feed(text)
        self.close()
        self.errors += self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes[name] for name in ("href", "src") if name in attributes]
        if any(name.startswith("on") for name in attributes):
            self.errors.append(attributes)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY and (not self.open or self.open.pop() != tag):
            self.errors.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] == "title":
            self.titles.append(data)


def page_of(*words, **environment):
    file = pathlib.Path(folder.name) / "report.html"
    run = Run(f"--html={file}", *words, **environment)
    text = file.read_bytes().decode("utf-8", "strict")
    return run, text, Page(text)


run, text, html_page = page_of("--gen-suppressions", "--", host, "leaked-push", "replaced-context", "threads")
check("--html: well formed", text.startswith("<!DOCTYPE html>") and not html_page.errors, html_page.errors)
check("--html: loads nothing, and links only to itself", {"script", "img", "link", "iframe"}.isdisjoint(html_page.tags)
      and all(link.startswith("#") and link[1:] in html_page.ids for link in html_page.links), html_page.links)
check("--html: each finding, with a mark in a picture", len(run.findings) > 2 and all(
    f"finding-{i + 1}" in html_page.ids and html_page.links.count(f"#finding-{i + 1}") >= 2 for i in range(len(run.findings))), text)
check("--html: colours have their contexts, with who created them",
      any(re.fullmatch(r"context \d+ \(device 0, created by audit_host in Create.*\)", title) for title in html_page.titles),
      html_page.titles)
check("--html: the verdict of the text", f"<h1 class=\"bad\">{run.err.splitlines()[2]}</h1>" in text, run)
script = pathlib.Path(folder.name) / "lib<script>alert('x')&.so"
shutil.copy(plugin, script)
run, text, html_page = page_of("--gen-suppressions", "--paths", "--", host, "unload", HOST_PLUGIN=str(script))
check("--html: a library named with <script>", run.findings and not html_page.errors and "script" not in html_page.tags
      and "&lt;script&gt;alert(&#39;x&#39;)&amp;.so" in text, text)
run, text, html_page = page_of("--", host, "well")
check("--html: no findings", "<h1 class=\"good\">0 findings, 0 libraries</h1>" in text and not html_page.errors
      and "svg" in html_page.tags, text)
run, text, html_page = page_of("--", "true")
check("--html: no process", "no process initialised CUDA" in text and not html_page.errors and "svg" not in html_page.tags, text)
run, text, html_page = page_of("--source=cupti", "--", host, "well", CUGUEST_AUDIT_CUPTI="/no/such/libcupti.so")
check("--html: a process that was not audited", "<h1 class=\"doubtful\">" in text and "The audit is incomplete" in text
      and "not audited, because" in text and not html_page.errors, text)
log = pathlib.Path(folder.name) / "html.log"
run, text, _ = page_of(f"--log={log}", "--", host, "leaked-push", "callback-pushes")
check("--html: a log gives the same page", page_of(f"--replay={log}")[1].split("</h1>")[1].split("</p>", 1)[1]
      == text.split("</h1>")[1].split("</p>", 1)[1], text)
check("--html: causes are links", re.search(r'<dt>cause</dt><dd><a href="#finding-\d+">', text), text)
run = Run("--html=/dev/full", "--sarif=/dev/full", "--", host, "leaked-push", "exit")
check("--html and --sarif: a full disk is reported", run.code == 3 and run.kinds() == ["leaked-push"]
      and "the HTML is not complete: /dev/full: No space left on device" in run.err
      and "the SARIF is not complete: /dev/full: No space left on device" in run.err, run)


# For forges.
sarif_schema = json.loads((root / "test" / "sarif.schema.json").read_text())


def sarif_of(*words, **environment):
    file = pathlib.Path(folder.name) / "report.sarif"
    run = Run(f"--sarif={file}", *words, **environment)
    sarif = json.loads(file.read_bytes().decode("utf-8", "strict"))
    check(f"--sarif: {' '.join(words[-3:])}: the schema", not schema.errors(sarif, sarif_schema), schema.errors(sarif, sarif_schema))
    return run, sarif["runs"][0]


ALL = ("--noise", "--", host, "well", "noisy-call", *(kind for kind in FAULTS if kind not in ("forked-child", "after-shutdown")))
run, sarif = sarif_of(*ALL)
rules = sarif["tool"]["driver"]["rules"]
check("--sarif: a result for each finding", [result["ruleId"] for result in sarif["results"]] == run.kinds()
      and len(run.findings) > 10, run)
check("--sarif: a rule for each kind", all(rules[result["ruleIndex"]]["id"] == result["ruleId"]
                                           for result in sarif["results"]) and len(rules) == len(
    report_schema["$defs"]["finding"]["properties"]["kind"]["enum"]), rules)
check("--sarif: complete", sarif["invocations"][0]["executionSuccessful"], sarif["invocations"])
prints = [result["partialFingerprints"] for result in sarif["results"]]
again, other = sarif_of(*ALL)
check("--sarif: fingerprints of another run are the same", prints == [result["partialFingerprints"] for result in other["results"]]
      and not any(re.search(r"0x|\d{4}", text) for value in prints for text in value.values()), prints)
run, sarif = sarif_of("--", host, "leaked-push", cwd=fixtures)
place = sarif["results"][0]["locations"][0]
check("--sarif: the function", {"function", "module"} == {where["kind"] for where in place["logicalLocations"]}
      and place["logicalLocations"][0]["fullyQualifiedName"] == "hostile::LeakPush", place)
# A compiler cache may have the folder of another build.
library = pathlib.Path(hostile)
is_built_here = any(bytes(parent) + b"\0" in library.read_bytes() for parent in list(library.parents)[:4])
if not is_built_here:
    skip("--sarif: file and line", "the debug information has the folder of another build")
elif knows_lines:
    check("--sarif: file and line, relative to the current folder", place["physicalLocation"] == {
        "artifactLocation": {"uri": "hostile.cc", "uriBaseId": "SRCROOT"},
        "region": {"startLine": line_of("hostile.cc", "leaked-push")}}
          and sarif["originalUriBaseIds"]["SRCROOT"]["uri"] == f"file://{fixtures}/", sarif)
known = pathlib.Path(folder.name) / "sarif.supp"
known.write_text("{\n known {0}\n cuguest-audit:leaked-push\n ...\n}\n{\n stale\n cuguest-audit:extra-pop\n ...\n}\n")
run, sarif = sarif_of(f"--suppressions={known}", "--", host, "leaked-push", "replaced-context")
check("--sarif: suppressed findings are suppressed results",
      [(result["ruleId"], [one["justification"] for one in result["suppressions"]]) for result in sarif["results"]]
      == [*((kind, []) for kind in run.kinds()), ("leaked-push", ["known {0}"])] and "leaked-push" not in run.kinds()
      and "unused suppression: stale" in json.dumps(sarif["invocations"]), sarif)
run, sarif = sarif_of("--", "true")
check("--sarif: nothing audited", sarif["results"] == [] and "no process initialised CUDA" in json.dumps(sarif["invocations"]), sarif)
run, sarif = sarif_of("--source=cupti", "--", host, "well", CUGUEST_AUDIT_CUPTI="/no/such/libcupti.so")
check("--sarif: incomplete", not sarif["invocations"][0]["executionSuccessful"] and any(
    note["level"] == "error" and "not audited" in note["message"]["text"]
    for note in sarif["invocations"][0]["toolExecutionNotifications"]), sarif)
evil = pathlib.Path(folder.name) / "libevil\x1b]0;x\x07\n\u009b.so"
shutil.copy(plugin, evil)
run, sarif = sarif_of("--", host, "unload", HOST_PLUGIN=str(evil))
check("--sarif: control characters in names", len(sarif["results"]) == 1
      and r"libevil\x1b]0;x" in sarif["results"][0]["message"]["text"], sarif)
sarif["results"][0]["level"] = "bad"
check("the schema of SARIF refuses an unknown level", list(schema.own_errors(
    {"$schema": sarif_schema["properties"]["$schema"]["const"], "version": "2.1.0", "runs": [sarif]}, sarif_schema, sarif_schema)))


# Colours.
def on_terminal(*words, **environment):
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([command, *words], env={**ENVIRONMENT, **environment}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # nobody has the other end any more
        pass
    os.close(ours)
    process.wait(timeout=60)
    return text.decode().replace("\r\n", "\n")


def without_pids(text):
    return re.sub(r"\(\d+\)|tid \d+|at \d+\.\d+ m?s", "", text)


for name in "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE":
    ENVIRONMENT.pop(name, None)
plain = Run("--", host, "leaked-push", json_file=False).err
colored = on_terminal("--", host, "leaked-push", TERM="xterm")
check("colours on a terminal", "\x1b[1;31m1 finding, 1 library\x1b[0m" in colored, colored)
check("colours are all that is more", without_pids(re.sub(r"\x1b\[[0-9;]*m", "", colored)) == without_pids(plain), colored)
check("no colours elsewhere", "\x1b" not in plain, plain)
for name, (words, environment) in {"a dumb terminal": ([], {"TERM": "dumb"}), "NO_COLOR": ([], {"TERM": "xterm", "NO_COLOR": "1"}),
                                   "--color=never": (["--color=never"], {"TERM": "xterm"})}.items():
    check(f"{name}: no colours", without_pids(on_terminal(*words, "--", host, "leaked-push", **environment)) == without_pids(plain))
check("--color=always", "\x1b[1;31m1 finding" in Run("--color=always", "--", host, "leaked-push").err)
check("CLICOLOR_FORCE", "\x1b[1;31m1 finding" in Run("--", host, "leaked-push", CLICOLOR_FORCE="1").err)
output = pathlib.Path(folder.name) / "colors.txt"
on_terminal(f"--output={output}", "--", host, "leaked-push", TERM="xterm")
check("a file has no colours", "1 finding, 1 library" in output.read_text() and "\x1b" not in output.read_text())

# As it happens.
process = subprocess.Popen([command, "--live", "--", host, "leaked-push", "leaked-push", "sleep"], env=ENVIRONMENT,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
line = process.stderr.readline() if select.select([process.stderr], [], [], 20)[0] else ""
check("--live: a line while the program runs", process.poll() is None and re.fullmatch(
    r"cuguest-audit: leaked push by libhostile\.so\+0x[0-9a-f]+ \(cuCtxPushCurrent\), victim audit_host\+0x[0-9a-f]+, thread 1 "
    r"of process \d+\n", line), line)
time.sleep(0.6)
process.send_signal(signal.SIGTERM)
_, err = process.communicate(timeout=60)
check("--live: a line for what is repeated, and then the report", not err.startswith("cuguest-audit: leaked")
      and "1 finding, 1 library" in err and "2 times, first" in err, err)
process = subprocess.Popen([command, "--live", "--object=libother*", "--", host, "leaked-push", "idle", "idle", "idle"], env=ENVIRONMENT,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
_, err = process.communicate(timeout=60)
check("--live: not what the report leaves out", "leaked push" not in err and "left out by --object: 1 finding" in err, err)
check("without --live there are no lines", "cuguest-audit: leaked" not in Run("--", host, "leaked-push", "idle", "idle", "idle").err)

# The trace.
trace = pathlib.Path(folder.name) / "trace.json"
run = Run(f"--trace={trace}", "--", host, "leaked-push", "threads", "crash")
events = json.loads(trace.read_text())
check("the trace is of the format", not list(schema.trace_errors(events)), list(schema.trace_errors(events)))
check("a slice for each context on the stack",
      any(event["ph"] == "B" and re.fullmatch(r"context \d+ \(device 0\)", event["name"]) for event in events))
check("an instant for a finding", any(event["ph"] == "i" and event["name"] == "leaked push"
                                      and "LeakPush" in event["args"]["culprit"] for event in events))
check("a counter of contexts", max(event["args"]["value"] for event in events
                                   if event["ph"] == "C" and event["name"] == "contexts") == 4)
check("a track for each thread", len({event["tid"] for event in events if event["ph"] == "B"}) == 65)
trace = pathlib.Path(folder.name) / "memory.json"
run = Run(f"--trace={trace}", "--", host, "leaked-push", LD_LIBRARY_PATH=f"{pathlib.Path(nvml).parent}:{simdir}")
events = json.loads(trace.read_text())
first, second = ([(event["ts"], event["args"]["value"]) for event in events
                  if event["name"] == f"memory in use, device {device} of NVML"] for device in range(2))
times = [event["ts"] for event in events if event["ph"] in "BEi"]
check("a counter of device memory, in order of time",
      [value for _, value in first] == [(1 << 30) + (i << 20) for i in range(len(first))] and first == sorted(first), first)
check("a counter of device memory that stays the same", [value for _, value in second] == [0, 0], second)
check("the memory of devices before a short program and after it",
      first[0][0] == second[0][0] == 0 < min(times) <= max(times) < second[-1][0] == first[-1][0], (first, second, times))
run = Run("--trace=/dev/full", "--log=/dev/full", "--", host, "leaked-push", "threads", "print")
check("a full disk is reported, and the program goes on",
      run.code == 0 and run.out == "output\n" and run.kinds() == ["leaked-push"]
      and "the trace ends early: /dev/full: No space left on device" in run.err
      and "the log ends early: /dev/full: No space left on device" in run.err, run)

# Logs.
log = pathlib.Path(folder.name) / "events.log"
first = Run(f"--log={log}", "--", host, "leaked-push", "extra-pop", "threads")
again = Run(f"--replay={log}")
check("--replay: the same findings", again.code == 0 and first.findings == again.findings and len(first.findings) == 2, again)
check("--replay: the same report, what the source does not see with it",
      again.err.split("\n", 2)[2] == first.err.split("\n", 2)[2] and "events from cudasim" in again.err, again)
not_audited = Run(f"--log={log}", "--source=cupti", "--error-exitcode=9", "--", host, "leaked-push", CUGUEST_AUDIT_CUPTI="/no/such/libcupti.so")
run = Run("--error-exitcode=9", f"--replay={log}")
check("--replay: a program that was not audited", run.code == 9
      and run.err.split("\n", 2)[2] == not_audited.err.split("\n", 2)[2] and "not audited" in run.err, run)
Run(f"--log={log}", "--", host, "leaked-push", "extra-pop", "threads")
check("--replay and --error-exitcode", Run("--error-exitcode=9", f"--replay={log}").code == 9)
content = log.read_bytes()
log.write_bytes(content[:len(content) // 2])
run = Run(f"--replay={log}")
check("a log that was cut off in a line",
      run.code == 0 and re.search(r"events.log: line \d+: cut off; .*precedes", run.err) and run.kinds(), run)
check("a log that is not there", Run("--replay=/no/log").code == 125)

done()
