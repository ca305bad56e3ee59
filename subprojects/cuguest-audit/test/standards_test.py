#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""standards_test.py, with the arguments of command_runs.py.

What others read of cuguest-audit, against their definitions: SARIF by classes that were generated from the standard's
schema, and a trace as packets of Perfetto's protocol. They are the Python packages pydantic-sarif and perfetto, installed or
in the folder CUGUEST_TEST_PACKAGES; what is not there is skipped by name.
"""

import decimal
import json
import os
import pathlib
import sys

from checks import check, done, skip
from command_runs import FAULTS, folder, host, ON_DEVICE_ONE, Run

sys.path.append(os.environ.get("CUGUEST_TEST_PACKAGES", ""))
try:
    from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif
except ImportError:
    Sarif = None
try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
except ImportError:
    perfetto = None

ALL = ["--noise", "--leaks=yes", "--", host, *(word for word in FAULTS if word != "after-shutdown"), *ON_DEVICE_ONE,
       "threads"]
NS_OF_US = 1000


def what_is_wrong(document):
    """With the document, by the standard's classes; "" if nothing is."""
    try:
        Sarif.model_validate(document)
    except ValueError as error:
        return str(error)
    return ""


def sarif_is_of_the_standard():
    file = pathlib.Path(folder.name) / "report.sarif"
    for name, words in {"findings of each kind": ALL, "nothing audited": ["--", "true"],
                        "no finding": ["--", host, "well"]}.items():
        run = Run(f"--sarif={file}", *words)
        document = json.loads(file.read_text())
        check(f"SARIF: {name}", what_is_wrong(document) == "", f"{what_is_wrong(document)}\n{run}")
    for name, spoil in {"a value": lambda run: run["invocations"][0].update(executionSuccessful="perhaps"),
                        "a member": lambda run: run.update(unheard=1)}.items():
        spoil(document["runs"][0])
        check(f"SARIF: {name} that the standard does not have is noticed", what_is_wrong(document))


class Packets:
    """The events of a trace as packets, which refuse what their fields cannot have."""

    TYPES = {"B": "TYPE_SLICE_BEGIN", "E": "TYPE_SLICE_END", "i": "TYPE_INSTANT", "C": "TYPE_COUNTER"}

    def __init__(self, events):
        self.trace, self.tracks, self.open, self.errors = perfetto.Trace(), {}, {}, []
        for event in events:
            self.add(event)
        self.errors += [f"a slice is not ended: {names}" for names in self.open.values() if names]

    def track(self, key, parent=None):
        """The descriptor's number, and whether it is new."""
        is_new = key not in self.tracks
        number = self.tracks.setdefault(key, len(self.tracks) + 1)
        if is_new:
            descriptor = self.trace.packet.add().track_descriptor
            descriptor.uuid = number
            if parent is None:
                descriptor.process.pid = key[1]
            else:
                descriptor.parent_uuid = parent
                descriptor.name = str(key[2])
                if key[0] == "counter":
                    descriptor.counter.SetInParent()
                else:
                    descriptor.thread.pid, descriptor.thread.tid = key[1:]
        return number

    def add(self, event):
        pid, tid, kind = event["pid"], event["tid"], event["ph"]
        process = self.track(("process", pid))
        if kind == "M":
            return
        packet = self.trace.packet.add()
        packet.timestamp = int(event["ts"] * NS_OF_US)
        packet.trusted_packet_sequence_id = 1
        told = packet.track_event
        told.type = getattr(perfetto.TrackEvent, self.TYPES[kind])
        if kind == "C":
            told.track_uuid = self.track(("counter", pid, event["name"]), process)
            told.counter_value = event["args"]["value"]
            return
        told.track_uuid = self.track(("thread", pid, tid), process)
        told.name = event["name"]
        for name, value in event.get("args", {}).items():
            told.debug_annotations.add(name=name, string_value=value)
        names = self.open.setdefault((pid, tid), [])
        if kind == "B":
            names.append(event["name"])
        elif kind == "E" and (not names or names.pop() != event["name"]):
            self.errors.append(f"ends what is not the innermost slice: {event}")


def trace_is_perfettos():
    file = pathlib.Path(folder.name) / "trace.json"
    for name, words in {"findings of each kind": ALL, "a crash": ["--", host, "leaked-push", "threads", "crash"],
                        "exec": ["--", host, "host:exec:[leaked-push]"]}.items():
        run = Run(f"--trace={file}", *words)
        events = json.loads(file.read_text(), parse_float=decimal.Decimal)
        packets = Packets(events)
        again = perfetto.Trace.FromString(packets.trace.SerializeToString())
        told = [packet.track_event for packet in again.packet if packet.HasField("track_event")]
        check(f"trace: {name}: each event is a packet", packets.errors == [] and told
              and len(told) == sum(event["ph"] != "M" for event in events), f"{packets.errors}\n{run}")
    check("trace: a slice that ends another is noticed", Packets(
        [dict(ph=kind, pid=1, tid=1, name=name, ts=0) for kind, name in ("Ba", "Bb", "Ea", "Eb")]).errors)


for what, test in {"SARIF: pydantic-sarif": Sarif and sarif_is_of_the_standard,
                   "trace: perfetto": perfetto and trace_is_perfettos}.items():
    if test is None:
        skip(what, "the package is not installed")
    else:
        test()
done()
