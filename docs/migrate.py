#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""migrate.py [--check] FILE|DIRECTORY...

Renames in sources that use cuguest 0.2 what 0.3 has renamed, and prints, as FILE:LINE: what, the places where a person
has to decide: docs/migration.md says why. Members are told by their names alone: look through what was renamed where
your own classes have a Free(), Destroy(), Detach(), Unload(), Disable(), Restore(), Settle() or incarnation(). Of a directory, its sources of C, C++ and CUDA. --check writes nothing, and
fails if a file would change. A file that includes status.h has been migrated, since its error.h is that of 0.3.
"""

import argparse
import pathlib
import re
import sys

# Types that are in the class that they belong to now.
NESTED = {
    "IncidentKind": "Incident::Kind", "Repair": "Incident::Repair", "CodeKind": "CodeImage::Kind",
    "KernelParameter": "Kernel::Parameter", "LoadingMode": "Module::LoadingMode",
    "MemoryKind": "MemoryDescription::Kind", "MemoryAccess": "MemoryDescription::Access",
    "PeerLink": "PeerAccess::Link", "ArrayCopy": "Array::Part", "SmPartition": "SmSplit::Part",
    "Texels": "TextureObject::Texels", "Dim3": "LaunchShape::Dim3", "Uuid": "Device::Uuid",
    "Ordinal": "Device::Ordinal", "DriverProblem": "Driver::Problem",
    "ContextOptions": "SharedContext::Options", "KernelAttributes": "Kernel::Attributes", "kIncidentKinds": "Incident::kKinds",
    "kMaxParamBytes": "ParamBuffer::kMaxBytes",
}
SOURCES = {".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".inl"}

# All are looked for at once, so that no result is renamed again: error_text.h becomes what was error.h.
RENAMED = {
    r'(?<=[<"])cuguest/error\.h(?=[>"])': "cuguest/status.h",
    r'(?<=[<"])cuguest/error_text\.h(?=[>"])': "cuguest/error.h",
    r'(?<=[<"])cuguest/testing/(sim|sim_runtime|sim_library)\.h(?=[>"])': r"cudasim/\1.h",
    r"\bcuguest::testing::(Sim\w*)": r"cudasim::\1",
    r"\bCUGUEST_SIM_(NVJITLINK|RUNTIME_VERSION)\b": r"CUDASIM_\1",
    r"\bJudgeVersions\b": "CheckCompatibility",
    r"\bJudgement\b": "CompatibilityReport",
    r"\bContextGuard::kMaxExactDepth\b": "ExactGuard::kMaxDepth",
    r"(?<=[.>])incarnation\(\)": "context()",
    r"(?<=[.>])Restore\(\)": "Leave()",
    r"(?<=[.>])(?:Detach|Unload|Disable|Free|Destroy)\(\)": "Release()",
    r"(?<=[.>])Settle\(\)": "Reassert()",
    r'(?<=[<"])cuguest/sm_partition\.h(?=[>"])': "cuguest/sm_split.h",
    r'(?<=[<"])cuguest/context_options\.h(?=[>"])': "cuguest/shared_context.h",
    r'(?<=[<"])cuguest/param_layout\.h(?=[>"])': "cuguest/param_buffer.h",
    # One that was named without its namespace goes on to mean what it meant.
    **{rf"\busing cuguest::{old};": f"using {old} = cuguest::{new};" for old, new in NESTED.items()
       if not old.startswith("k")},
    **{rf"\bcuguest::{old}\b": f"cuguest::{new}" for old, new in NESTED.items()},
}
# What is not only a name.
BY_HAND = {
    r"\b(?:Context|Exact|Acquired)Guard\s+\w+\s*[({][^,;]*, *(?:cuguest::)?Location(?:::Here\(\)|\{[^}]*\})"
    r"|\.emplace(?:_back)?\([^,;]*, *(?:cuguest::)?Location(?:::Here\(\)|\{[^}]*\})\)":
        "the Location comes last, behind the GuardMode",
    r"\bGuardMode::kExact\b": "an ExactGuard (cuguest/exact_guard.h), which does not move",
    r"\bSetIncidentHandler\b|\bIncidentHandler\b": "an IncidentListener (cuguest/incident_listener.h)",
    r"\bCopy(?:Async)?\((?:[^;]*, *)?(?:\w+::)*(?:HostSpan|as_const|MakeConstSpan|MakeSpan)\b":
        "Upload(view, values) or Download(view, values): the view first",
    r"\bPackedParams\b|\bParamLayout\b|\bParamPlace\b":
        "pass values to Launch(), or a ParamBuffer, whose parameters() say where each lies",
    r"\bThreadResidency\b": "a ContextScope (cuguest/context_scope.h) that enters with GuardMode::kAlwaysPush",
    r"\bDeviceGuard\s+\w+\s*[({][^,;]*[)}]\s*;":
        "refuses where the primary context is inactive: say IfInactive::kCreate if it is to be created",
}

EITHER = re.compile("|".join(f"(?:{pattern})" for pattern in RENAMED))


def renamed(match):
    for pattern, new in RENAMED.items():
        if found := re.compile(pattern).match(match.string, match.start()):
            return found.expand(new)
    return match[0]


def migrate(text):
    """The text with the new names, and (line, advice) of what is left to do."""
    is_done = re.search(r'[<"]cuguest/status\.h[>"]', text)
    text = text if is_done else EITHER.sub(renamed, text)
    left = [(text.count("\n", 0, match.start()) + 1, advice)
            for pattern, advice in BY_HAND.items() for match in re.finditer(pattern, text)]
    return text, sorted(left)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    changed = 0
    for path in options.paths:
        inside = (each for each in sorted(path.rglob("*")) if each.suffix in SOURCES and each.is_file())
        for file in inside if path.is_dir() else [path]:
            before = file.read_text(errors="surrogateescape")
            after, left = migrate(before)
            for line, advice in left:
                print(f"{file}:{line}: {advice}")
            if after == before:
                continue
            changed += 1
            if options.check:
                print(f"{file}: has names of 0.2")
            else:
                file.write_text(after, errors="surrogateescape")
    print(f"{changed} files {'to change' if options.check else 'changed'}")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
