#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""migrate.py [--check] FILE|DIRECTORY...

Renames in sources that use cuguest 0.2 what 0.3 has renamed, and prints, as FILE:LINE: what, the places where a person
has to decide: docs/migration.md says why. Members are known by their names alone: look through what was renamed where
your own classes have a Free(), Destroy(), Detach(), Unload(), Disable(), Restore(), Settle(), incarnation(), GetUuid()
or PciBusId(). A variable that is made by SharedContext::Create() or another function that returned an absl::StatusOr
is the object itself afterwards, as far as its scope goes. Of a directory, its sources of C, C++ and CUDA. --check
writes nothing, and fails if a file would change. A file that includes status.h has been migrated, since its error.h is
that of 0.3.
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
    "kMaxParamBytes": "ParamBuffer::kMaxBytes", "ArrayDescription": "Array::Description",
}
SOURCES = {".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".inl"}

# Headers that went to where the product is that they belong to.
OBJECTS = (
    "array capture_scope code_image copy device_buffer device_ptr device_view graph host_span jit kernel launch linker memory"
    " module occupancy param_buffer peer_access pinned_buffer pinned_pages pitched_view stream stream_protocol"
    " surface_object texture_object typed_kernel").replace(" ", "|")
MOVED = {
    rf'(?<=[<"])cuguest/(?=(?:{OBJECTS})\.h[>"])': "cuguest/objects/",
    r'(?<=[<"])cuguest/runtime/(?=(?:cublas|cufft|cusolver|cusparse|library|nccl)\.h[>"])': "cuguest/libraries/",
}

# All are looked for at once, so that no result is renamed again: error_text.h becomes what was error.h.
RENAMED = {
    r'(?<=[<"])cuguest/error_text\.h(?=[>"])': "cuguest/error.h",
    r'(?<=[<"])cuguest/testing/(sim|sim_runtime|sim_library)\.h(?=[>"])': r"cudasim/\1.h",
    r"\bcuguest::testing::(Sim\w*)": r"cudasim::\1",
    r"\bCUGUEST_SIM_(NVJITLINK|RUNTIME_VERSION)\b": r"CUDASIM_\1",
    r"\bJudgeVersions\b": "CheckCompatibility",
    r"\busing ((?:cuguest::)?runtime)::CufftLayout;": r"using CufftLayout = \1::CufftPlans::Layout;",
    r"\bruntime::CufftLayout\b": "runtime::CufftPlans::Layout",
    r"\busing cuguest::CaptureState;": "",
    r"\b(?:cuguest::)?CaptureState::kNone\b": "CU_STREAM_CAPTURE_STATUS_NONE",
    r"\b(?:cuguest::)?CaptureState::kActive\b": "CU_STREAM_CAPTURE_STATUS_ACTIVE",
    r"\b(?:cuguest::)?CaptureState::kInvalidated\b": "CU_STREAM_CAPTURE_STATUS_INVALIDATED",
    r"\b(?:cuguest::)?CaptureState::kUnknown\b": "std::nullopt",
    r"\bCaptureStateOf\b": "CaptureStatusOf",
    r"(?<=[.>])capture_state\(\)": "capture_status()",
    r"\bContextGuard::kMaxExactDepth\b": "ExactGuard::kMaxDepth",
    r"(?<=[.>])incarnation\(\)": "context()",
    r"(?<=[.>])Restore\(\)": "Leave()",
    r"(?<=[.>])(?:Detach|Unload|Disable|Free|Destroy)\(\)": "Release()",
    r"(?<=[.>])Settle\(\)": "Reassert()",
    r'(?<=[<"])cuguest/sm_partition\.h(?=[>"])': "cuguest/sm_split.h",
    r'(?<=[<"])cuguest/thread_residency\.h(?=[>"])': "cuguest/thread_home.h",
    r'(?<=[<"])cuguest/context_options\.h(?=[>"])': "cuguest/shared_context.h",
    r'(?<=[<"])cuguest/context_source\.h(?=[>"])': "cuguest/acquire.h",
    r"\busing cuguest::(?:AcquireResult|AcquiredContext|ContextSource);": "using cuguest::Acquired;",
    r"\b(?:AcquireResult|AcquiredContext)\b": "Acquired",
    r"\bContextSource\b": "Acquired::Source",
    r"(?<![\w:])(?:cuguest::)?SharedContext::CheckSharing\b": "cuguest::CheckSharing",
    r"(?<![\w:])(?:cuguest::)?Device::At\b": "cuguest::DeviceAt",
    r"(?<![\w:])(?:cuguest::)?Device::Count\b": "cuguest::CountDevices",
    r"(?<![\w:])(?:cuguest::)?Device::OfCurrentContext\b": "cuguest::CurrentDevice",
    r'(?<=[<"])cuguest/param_layout\.h(?=[>"])': "cuguest/param_buffer.h",
    # One that was named without its namespace goes on to mean what it meant.
    **{rf"\busing cuguest::{old};": f"using {old} = cuguest::{new};" for old, new in NESTED.items()
       if not old.startswith("k")},
    **{rf"\bcuguest::{old}\b": f"cuguest::{new}" for old, new in NESTED.items()},
}
# What is not only a name.
BY_HAND = {
    r"(?:->|\.)(?:Mem(?:Alloc|Free|cpy|set|Host|GetAccess)\w*|Module\w+|Event(?:Create|Destroy|Record|Query|Synchronize|Elapsed)\w*"
    r"|Graph(?:Create|Destroy|Add|Kernel|Instantiate|Exec|Launch)\w*|Library(?:Load|Unload|Get|Enumerate)\w*|LaunchKernel\w*"
    r"|Stream(?:CreateWithPriority|Synchronize|Query|WaitEvent|GetCaptureInfo|BeginCapture|EndCapture))\("
    r"|\bDriver::(?:Mem|Module|Event|Graph|Library|Launch|Func|Kernel|Link|Occupancy)\w+":
        "of a driver: an entry of cuguest::ObjectDriver (cuguest/objects/driver.h)",
    r"\b(?:Context|Exact|Acquired)Guard\s+\w+\s*[({][^,;]*, *(?:cuguest::)?Location(?:::Here\(\)|\{[^}]*\})"
    r"|\bmake_unique<(?:const )?(?:cuguest::)?(?:Context|Exact|Acquired)Guard>\([^;]*, *(?:cuguest::)?Location(?:::Here\(\)|\{[^}]*\})"
    r"|\.emplace(?:_back)?\([^,;]*, *(?:cuguest::)?Location(?:::Here\(\)|\{[^}]*\})\)":
        "the Location comes last, behind the GuardMode",
    r"\bCompatibilityReport\b|\bJudgement\b":
        "CheckCompatibility() returns an absl::Status; the sentence is that of Explain(versions)",
    r"\bSuggestedShape\b": "a LaunchShape: block.x, and grid.x for min_grid",
    r"\bArrayFormat\b": "a CUDA_ARRAY_DESCRIPTOR: Format, and NumChannels for channels",
    r"(?:\.|->)plan\(\)": "of a CufftScope: handle(), as of the other libraries' scopes",
    r"\bCaptureState\b(?!::k(?:None|Active|Invalidated|Unknown)\b)":
        "a std::optional<CUstreamCaptureStatus>, which is std::nullopt where it is not known",
    r"\bCheckCompatibility\([^;]*\)\.(?:status|sentence)\b":
        "CheckCompatibility() returns an absl::Status; the sentence is that of Explain(versions)",
    r"(?:\.|->)(?:Attributes|Parameters)\((?=[^\s)])": "of a Kernel: AttributesIn(context), ParametersIn(context)",
    r"(?:\.|->)place\(": "of a ParamLayout or a ParamBuffer: parameters(), each a Kernel::Parameter",
    r"\bauto\s+\w+\s*=\s*(?:cuguest::)?(?:SharedContext|PrimaryContext)::\w+\([^;]*\),\s*\w+\s*=":
        "what the second one is made of returns the object itself, too: declare each by itself",
    r"\bGuardMode::kExact\b": "an ExactGuard (cuguest/exact_guard.h), which does not move",
    r"\bSetIncidentHandler\b|\bIncidentHandler\b": "an IncidentListener (cuguest/incident_listener.h)",
    r"\bCopy(?:Async)?\((?:[^;]*, *)?(?:\w+::)*(?:HostSpan|as_const|MakeConstSpan|MakeSpan)\b":
        "Upload(view, values) or Download(view, values): the view first",
    r"\bPackedParams\b|\bParamLayout\b|\bParamPlace\b":
        "pass values to Launch(), or a ParamBuffer, whose parameters() say where each lies",
    r"\bThreadResidency\b": "a ThreadHome (cuguest/thread_home.h), whose Check() was Settle()",
    r"\bcuguest_residency\w*": "a cuguest_thread_home, entered by cuguest_thread_home_enter_ref() with options 0",
    r"\bDeviceGuard\s+\w+\s*[({][^,;]*[)}]\s*;":
        "refuses where the primary context is inactive: say IfInactive::kCreate if it is to be created",
    r"\bStatusOr<\s*(?:cuguest::)?(?:SharedContext|PrimaryContext(?:::State)?|Acquired)\s*>":
        "what 0.3 returns is the object itself; a StatusOr that is made of it is ok() also where the object is not",
    r"\b(?!CUGUEST_)[A-Z_]*ASSIGN_OR_RETURN\([^;]*?"
    r"\b(?:SharedContext::(?:Create|Attach)|PrimaryContext::(?:Retain|RetainIfActive|Query)"
    r"|Acquire(?:From(?:Stream|Pointer|Buffer)|On|Current))\(":
        "no StatusOr any more: CUGUEST_ASSIGN_OR_RETURN takes it",
    r"\b\w*[aA]cquired?\w*(?:\.|->)device\(\)": "GetDevice(&device), which returns a CUresult",
    r"\.cig\s*=\s*(?!=|&|nullptr)": "a pointer to what the caller keeps until Create() has returned",
}

# What returned an absl::StatusOr and returns the object itself, and the types of that.
MAKES = (r"(?:cuguest::)?(?:SharedContext::(?:Create|Attach)|PrimaryContext::(?:Retain|RetainIfActive|Query)"
         r"|Acquire(?:From(?:Stream|Pointer|Buffer)|On|Current))")
MADE = r"(?:cuguest::)?(?:SharedContext|PrimaryContext(?:::State)?|Acquired)"
GUARD = r"(?:cuguest::)?(?:AcquiredGuard|(?:runtime::)?DeviceGuard)"

EITHER = re.compile("|".join(f"(?:{pattern})" for pattern in RENAMED))


def renamed(match):
    for pattern, new in RENAMED.items():
        if found := re.compile(pattern).match(match.string, match.start()):
            return found.expand(new)
    return match[0]


def code_of(text):
    """The text with blanks for what comments and literals say."""
    literals = r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
    return re.sub(literals, lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.S)


def close_of(code, at):
    """Where the bracket at `at` is closed."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i
    return len(code) - 1


def scope_end(code, at):
    """Where what is declared before `at` goes out of scope: a variable with its block, a parameter or what an `if`
    declares with the block behind the parentheses."""
    while at < len(code) and code[at] not in ")}":
        at = (close_of(code, at) if code[at] in "([{" else at) + 1
    if code[at:at + 1] != ")":
        return at
    behind = re.compile(r"[^;{}]*").match(code, at).end()
    while code[behind:behind + 1] == "{":
        behind = close_of(code, behind) + 1
        other = re.compile(r"\s*else\b[^;{}]*").match(code, behind)
        behind = other.end() if other else behind
    return behind


def is_unary(code, at):
    """Whether the `*` at `at` is no multiplication, nor of a pointer's type."""
    before = code[:at].rstrip()
    return not re.search(r"[\w)\]>]$", before) or re.search(r"\b(?:co_)?return$", before) is not None


def replace(text, begin, end, pattern, new, allowed=lambda code, at: True):
    """The text with what matches in its code from `begin` to `end` replaced, and the new end."""
    code = code_of(text)
    for match in reversed(list(re.compile(pattern).finditer(code, begin, end))):
        if allowed(code, match.start()):
            with_what = match.expand(new)
            text = text[:match.start()] + with_what + text[match.end():]
            end += len(with_what) - (match.end() - match.start())
    return text, end


def unwrap_calls(text):
    """What is done at once with what a call returns."""
    for match in reversed(list(re.finditer(rf"(?<![\w.>:])(?:{MAKES}|{GUARD})\(", code_of(text)))):
        code = code_of(text)
        begin, end = match.start(), close_of(code, match.end() - 1) + 1
        if code[:begin].endswith("std::move(") and code[end:end + 1] == ")":
            begin, end = begin - len("std::move("), end + 1
        call, rest = text[begin:end], text[end:]
        if status := re.match(r"\s*\.status\(\)", rest):
            call, rest = f"cuguest::ToStatus({call})", rest[status.end():]
        elif value := re.match(r"\s*\.value\(\)", rest):
            rest = rest[value.end():]
        elif rest.startswith("->"):
            rest = "." + rest[2:]
        elif code[begin - 1:begin] == "*" and is_unary(code, begin - 1):
            begin -= 1
        text = text[:begin] + call + rest
    return text


def unwrap_variable(text, name, begin):
    """What is done with a variable that was a StatusOr, from `begin` to the end of its scope."""
    end = scope_end(code_of(text), begin)
    text, end = replace(text, begin, end, rf"\*std::move\({name}\)", f"std::move({name})", is_unary)
    text, end = replace(text, begin, end, rf"\bstd::move\({name}\)\.value\(\)", f"std::move({name})")
    text, end = replace(text, begin, end, rf"(?<![\w.>])(?:std::move\({name}\)|{name})\.status\(\)",
                        f"cuguest::ToStatus({name})")
    text, end = replace(text, begin, end, rf"(?<![\w.>]){name}\.value\(\)", name)
    text, end = replace(text, begin, end, rf"(?<![\w)\]>])\(\*{name}\)(?=\.)", name)
    text, end = replace(text, begin, end, rf"\*{name}\b", name, is_unary)
    text, end = replace(text, begin, end, rf"(?<![\w.>]){name}->", f"{name}.")
    return text


def unwrap_variables(text):
    is_made = rf"(?:=\s*|\(\s*|\{{\s*){MAKES}\("
    declared = rf"\b(?:absl::StatusOr<\s*({MADE})\s*>|{MADE}|auto)(\s*&{{0,2}}\s*\b)(\w+)(?=\s*[=({{;,)])"
    at = 0
    while match := re.compile(declared).search(code_of(text), at):
        at = match.end()
        code = code_of(text)
        begins_made = re.compile(rf"\s*{is_made}").match(code, at)
        begins_otherwise = not begins_made and re.compile(r"\s*[=({]\s*[^\s;,)}]").match(code, at)
        gets_made = not begins_otherwise and re.compile(rf"(?<![\w.>]){match[3]}\s*{is_made}").search(
            code, at, scope_end(code, at))
        if match[1] and (begins_made or gets_made):
            text = text[:match.start()] + match[1] + match[2] + match[3] + text[at:]
            at -= match.end() - match.start() - len(match[1] + match[2] + match[3])
        elif match[1] or match[0].startswith("auto") and not begins_made:
            continue
        text = unwrap_variable(text, match[3], at)
    return text


def say_status(text):
    """What gave a status, and gives an Error."""
    code = code_of(text)
    for name in sorted(set(re.findall(rf"\b{GUARD}\s+(\w+)\s*[({{]", code))):
        text, _ = replace(text, 0, len(text), rf"(?<![\w.>]){name}\.status\(\)", f"cuguest::ToStatus({name})")
    for name in sorted(set(re.findall(rf"\b{MADE}\s*&?\s*\b(\w+)\s*[=;,){{(]", code))
                       | set(re.findall(rf"\bauto\s+(\w+)\s*=\s*{MAKES}\(", code))):
        call = rf"((?<![\w.>]){name}\.Release\(\))"
        text, _ = replace(text, 0, len(text), rf"{call}\.IgnoreError\(\)", r"static_cast<void>(\1)")
        text, _ = replace(text, 0, len(text), rf"{call}(?=\.(?!ok\())", r"cuguest::ToStatus(\1)")
        before = r"(\breturn |[^=]= ?|(?<!static_cast<void>)(?<!ToStatus)\()"
        text, _ = replace(text, 0, len(text), rf"{before}{call}(?=\s*[;,)])", r"\1cuguest::ToStatus(\2)")
    return text


def name_devices(text):
    """The questions to a Device, which are functions of devices.h."""
    before = text
    for member, function in (("PciBusId", "PciBusIdOf"), ("GetUuid", "UuidOf"), ("Name", "NameOf")):
        code = code_of(text)
        names = r"(?:cuguest::)?Device::Borrow\([^()]*\)|(?:\w+(?:\(\))?(?:\.|->))*\w+(?:\(\))?"
        if member == "Name":  # which others have, too
            devices = set(re.findall(r"\bDevice>?\s*&?\s*\b(\w+)\s*[=;,){(]", code))
            names = "|".join(sorted(devices)) or r"(?!)"
        receivers = ((rf"({names})\.", r"\1"), (rf"\(\*({names})\)\.", r"*\1"), (rf"({names})->", r"*\1"))
        for receiver, argument in receivers:
            called = rf"(?<![\w.>]){receiver}{member}\(\)"
            text, _ = replace(text, 0, len(text), called, f"cuguest::{function}({argument})")
    asks = r"cuguest::(?:DeviceAt|CountDevices|CurrentDevice|NameOf|PciBusIdOf|UuidOf)\("
    if text != before or re.search(asks, code_of(text)):
        text = re.sub(r'(?<=[<"])cuguest/device\.h(?=[>"])', "cuguest/devices.h", text)
        text = include(text, "cuguest/devices.h")
    return text


def include(text, header):
    """The text with that header included, behind those of ours whose names come before."""
    of_ours = list(re.finditer(r'^#include ([<"])(cuguest/[\w/]+\.h)[>"].*\n', text, re.M))
    if not of_ours or any(each[2] == header for each in of_ours):
        return text
    before = [each for each in of_ours if each[2] < header]
    at = before[-1].end() if before else of_ours[0].start()
    closing = ">" if of_ours[0][1] == "<" else '"'
    return f"{text[:at]}#include {of_ours[0][1]}{header}{closing}\n{text[at:]}"


def unnamed(text):
    """(place, advice) of what only the whole file shows."""
    code = code_of(text)
    if re.search(r"\busing\s+namespace\s+cuguest\s*;", code):
        for match in re.finditer(rf"(?<![\w:.>])(?:{'|'.join(NESTED)})\b(?!\s*=)", code):
            if not re.search(r"\b(?:using|enum|class|struct|typename)\s+(?:class\s+)?$", code[:match.start()]):
                yield match.start(), f"cuguest::{NESTED[match[0]]}, if it is cuguest's"
    acquired = set(re.findall(r"\b(?:Acquired|auto)\s*&?\s*\b(\w+)\s*=\s*(?:cuguest::)?Acquire\w*\(", code))
    for name in sorted(acquired):
        for match in re.finditer(rf"(?<![\w.>]){name}(?:\.|->)device\(\)", code):
            yield match.start(), "GetDevice(&device), which returns a CUresult"
    containers = set(re.findall(r"\bstd::(?:vector|array|string)\b[^;(){}=]*>?\s*&?\s*\b(\w+)\s*[;,(){=]", code))
    if containers:
        named = "|".join(sorted(map(re.escape, containers)))
        for match in re.finditer(rf"(?<![\w:])(?:cuguest::)?Copy(?:Async)?\((?=[^;]*\b(?:{named})\b)", code):
            yield match.start(), "Upload(view, values) or Download(view, values): the view first"


def says_status(text):
    """Whether it uses what status.h has, which was error.h."""
    return re.search(r"(?<!runtime::)\b(?:ToStatus|CodeOf)\(", code_of(text))


def migrate(text):
    """The text with the new names, and (line, advice) of what is left to do."""
    is_done = re.search(r'[<"]cuguest/status\.h[>"]', text)
    if not is_done:
        named_codes = re.search(r'[<"]cuguest/error_text\.h[>"]', text)
        if says_status(text):
            text = re.sub(r'(?<=[<"])cuguest/error\.h(?=[>"])', "cuguest/status.h", text)
        text = say_status(unwrap_variables(unwrap_calls(EITHER.sub(renamed, text))))
        text = name_devices(text)
        if re.search(r"\bcuguest::CheckSharing\(", text):
            text = include(text, "cuguest/sharing.h")
        if re.search(r"\bcuguest::ToStatus\(", text) or named_codes and says_status(text):
            text = include(text, "cuguest/status.h")
    for pattern, new in MOVED.items():
        text = re.sub(pattern, new, text)
    left = {(text.count("\n", 0, match.start()) + 1, advice)
            for pattern, advice in BY_HAND.items() for match in re.finditer(pattern, text)}
    left |= {(text.count("\n", 0, at) + 1, advice) for at, advice in unnamed(text)}
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
