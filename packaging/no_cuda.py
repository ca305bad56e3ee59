# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What two_files writes for CUGUEST_NO_CUDA, beside the headers of lib/no_cuda: the functions of cuguest/c.h, each with a
body of FUNCTIONS; names and texts, as lib/core/error_rows.h, lib/stack/incident.cc and lib/acquire/acquire.cc have them;
and the driver's names, which are other names while the header is read, whatever a cuda.h has made of them.
"""

import re

# Where a struct of ours, or a function, that is needed is null.
CHECKED = "if ({any_null}) return 1;  /* CUDA_ERROR_INVALID_VALUE */\n  "
SUCCEEDS = CHECKED + "return 0;"
NOT_SUPPORTED = CHECKED + "return 801;  /* CUDA_ERROR_NOT_SUPPORTED */"
NOT_BEGUN = CHECKED + "return 401;  /* CUDA_ERROR_ILLEGAL_STATE, of what has not begun */"
NOT_FOUND = CHECKED + "return 500;  /* CUDA_ERROR_NOT_FOUND */"
# What a scope was given is in the first word that is ours.
REMEMBERS = CHECKED + "memcpy({first}->opaque, &{given}, sizeof({given}));\n  return 0;"
NAMES = "  ref->size = sizeof(*ref);\n  ref->context = {named};\n  ref->id = 0;\n  "
NAMES_NONE = CHECKED + NAMES.replace("{named}", "NULL").lstrip()
RECALLS = NAMES_NONE + "memcpy(&ref->context, {first}->opaque, sizeof(ref->context));\n  return 0;"


def given(what):
    return REMEMBERS.replace("{given}", what)


FUNCTIONS = {}
for body, names in (
        (SUCCEEDS, """
guard_relax guard_reassert guard_leave push push_ref pop no_context_guard_enter no_context_guard_leave host_scope_enter
host_scope_leave capture_guard_enter capture_guard_leave thread_home_check thread_home_leave release_kept_primary
incident_listener_register incident_listener_remove"""),
        ("return 0;", "is_initialized incident_count per_context_size"),
        (given("context"), "guard_enter guard_move_to"),
        (given("ref->context"), "guard_enter_ref guard_move_to_ref thread_home_enter_ref thread_home_move_to"),
        (CHECKED + "{first}->opaque[0] = 0;\n  return 0;", """
guard_enter_stream guard_enter_pointer guard_enter_device guard_enter_acquired thread_home_enter_stream
thread_home_enter_pointer thread_home_enter_device"""),
        (RECALLS, "guard_ref thread_home_ref"),
        (NOT_SUPPORTED, """
driver_adopt primary_retain primary_retain_if_active acquire_on acquire_from_pointer acquire_from_stream acquire_any
free_memory peer_access_check shared_context_create shared_context_attach per_context_get"""),
        (NOT_BEGUN, """
primary_move primary_release acquired_hold acquired_device acquired_move acquired_release primary_keeper_keep
primary_keeper_release shared_context_move shared_context_detach per_context_unpin per_context_close"""),
        (NAMES_NONE + "return 401;  /* CUDA_ERROR_ILLEGAL_STATE */", "primary_ref acquired_ref shared_context_ref"),
        (NOT_FOUND, "per_context_find per_context_forget per_context_forget_destroyed"),
        (CHECKED + "if (count != NULL) *count = 0;\n  return 0;", "per_context_forget_all per_context_drop_dead"),
        ("return -1;", "acquired_source"),
        ("return NULL;", "per_context_value"),
        (NAMES_NONE + "return 801;  /* CUDA_ERROR_NOT_SUPPORTED */", "ref_current"),
        (CHECKED + NAMES.replace("{named}", "context").lstrip() +
         "return context != NULL ? 0 : 201;  /* CUDA_ERROR_INVALID_CONTEXT */", "ref_borrow"),
        (CHECKED + "return ref->context != NULL ? 0 : 201;  /* CUDA_ERROR_INVALID_CONTEXT */", "ref_check"),
        ('return "";', "error_advice"),
        ('const char* const done = doing != NULL ? doing : "";\n'
         '  const char* const between = *done != \'\\0\' ? ": " : "";\n'
         "  int length = 0;\n"
         "  if (size > 0) *text = '\\0';\n"
         "  if (code != 0) {\n"
         '    length = snprintf(text, size, "%s%s%s (%d): %s", done, between, cuguest_error_name(code), code,\n'
         "                      cuguest_error_text(code));\n"
         "  }\n"
         "  return length > 0 ? (size_t)length : 0;", "error_write"),
        ("if (storage == NULL || size < sizeof(size)) return;\n  memset(storage, 0, size);\n"
         "  memcpy(storage, &size, sizeof(size));", "init"),
        ("", """
guard_cleanup no_context_guard_cleanup host_scope_cleanup capture_guard_cleanup primary_cleanup acquired_cleanup
primary_keeper_cleanup thread_home_cleanup shared_context_cleanup per_context_pin_cleanup per_context_cleanup
incident_listener_cleanup"""),
):
    FUNCTIONS.update(dict.fromkeys((f"cuguest_{name}" for name in names.split()), body))

# What is declared of a driver that is not there, by the names of its enumerations.
CODES = {"CUresult": "AnyCode", "CUstreamCaptureStatus": "AnyCode", "CUstreamCaptureMode": "AnyOption"}
HANDLES = ("CUcontext", "CUstream")
# What a source expects of a cuda.h, where none has been seen.
EXPECTED = (*HANDLES, "CUdevice", "CUdeviceptr", *CODES)
STRING = r'(?:"(?:[^"\\]|\\.)*"\s*)+'


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def known_errors(root):
    """(code, name, kind, text) of each row, and the name and the text of any other code."""
    rows = (root / "lib/core/error_rows.h").read_text()
    (before, behind), = re.findall(rf'^ +({STRING})what ({STRING})\)$', rows, re.M)
    rows = re.sub(rf'^    LOST\((\d+, \w+, \w+),\s*({STRING})\)', rf'    ROW(\1, kDataLoss, {before}\2{behind})', rows, flags=re.M)
    table = rows[rows.index("kKnownErrors[] = {"):rows.index("#undef ROW")]
    found = re.findall(rf'(?:ROW\((\d+), (\w+), \w+, |{{(\d+), "(\w+)", (?:nullptr|"\w+"), Canonical::)(\w+),\s*({STRING})[)}}]', table)
    if len(found) != len(re.findall(r"^    (?:ROW\(|\{)", table, re.M)):
        raise SystemExit("two_files: a row of lib/core/error_rows.h was not understood")
    unknown = re.search(rf'kUnrecognized = \{{\s*-1, "(\w+)", [\w:]+,\s*({STRING})\}}', (root / "lib/core/error.cc").read_text())
    errors = [(int(code or plain), f"CUDA_ERROR_{name}" if name else other, kind, text.strip())
              for code, name, plain, other, kind, text in found]
    return errors, unknown.groups()


def c_switch(name, values, otherwise, of="int code"):
    """The function `name`, which gives the text of a code."""
    cases = "".join(f"    case {value}:\n      return {text};\n" for value, text in values)
    return (f"CUGUEST_C_API const char* {name}({of}) {{\n  switch ({of.split()[-1]}) {{\n{cases}    default:\n"
            f"      return {otherwise};\n  }}\n}}\n")


def texts(root):
    errors, (name, text) = known_errors(root)
    incidents = (root / "lib/stack/incident.cc").read_text()
    kinds = re.findall(rf"/\* k\w+ \*/ ({STRING}),", incidents)
    unknown_kind = re.search(rf"kNames\[index\] : ({STRING});", incidents).group(1)
    repairs = re.findall(STRING, incidents[incidents.index("Name(Incident::Repair"):])
    return {
        "cuguest_error_name": c_switch("cuguest_error_name", [(code, f'"{of}"') for code, of, _, _ in errors], f'"{name}"'),
        "cuguest_error_text": c_switch("cuguest_error_text", [(code, of) for code, _, _, of in errors], text.strip()),
        "cuguest_incident_name": c_switch("cuguest_incident_name", list(enumerate(kinds)), unknown_kind, "int kind"),
        "cuguest_repair_name": c_switch("cuguest_repair_name", list(enumerate(repairs[:2])), repairs[2], "int repair"),
    }


def sticky(root):
    """IsSticky(), in C++."""
    codes = [f"    case {code}:\n" for code, _, kind, _ in known_errors(root)[0] if kind == "kDataLoss"]
    return ("\nCUGUEST_BEGIN_NAMESPACE\n\ninline bool IsSticky(CUresult code) noexcept {\n  switch (static_cast<int>(code)) {\n" +
            "".join(codes) + "      return true;\n    default:\n      return false;\n  }\n}\n\nCUGUEST_END_NAMESPACE\n")


def names_of_sources(root):
    """Name(Acquired::Source), in C++, as lib/acquire/acquire.cc has it."""
    found = re.search(r"^const char\* Name\(Acquired::Source source\) noexcept \{\n.*?^\}\n", (root / "lib/acquire/acquire.cc").read_text(),
                      re.M | re.S)
    return f"\nCUGUEST_BEGIN_NAMESPACE\n\ninline {found.group(0)}\nCUGUEST_END_NAMESPACE\n"


def c_functions(header, root):
    """A definition of each function that `header`, the text of c.h as it is written, declares."""
    out, written = [], texts(root)
    for attributes, result, name, listed in re.findall(
            r"^((?:CUGUEST_C_NODISCARD )?CUGUEST_C_API) ([\w* ]+?)\b(cuguest_\w+)\(([^;]*)\);", without_comments(header), re.M):
        if name in written:
            out.append(written.pop(name))
            continue
        if name not in FUNCTIONS:
            raise SystemExit(f"two_files: {name} has no body in packaging/no_cuda.py")
        listed = re.sub(r"\s+", " ", listed).strip()
        parameters = [] if listed == "void" else [(one.rpartition(" ")[0].strip(), one.split()[-1].lstrip("*"))
                                                  for one in re.sub(r"\*(\w)", r"* \1", listed).split(", ")]
        needed = [of for kind, of in parameters if kind.removeprefix("const ").startswith("cuguest_")]
        needed += [of for kind, of in parameters if kind == "int*"]
        body = FUNCTIONS[name]
        if not needed:
            body = body.replace(CHECKED, "")
        body = body.replace("{any_null}", " || ".join(f"{of} == NULL" for of in needed))
        body = body.replace("{first}", parameters[0][1] if parameters else "")
        unused = "".join(f"  (void){of};\n" for _, of in parameters if not re.search(rf"\b{of}\b", body))
        out.append(f"{attributes} {result}{name}({listed}) {{\n{unused}" + (f"  {body}\n" if body else "") + "}\n")
    if written:
        raise SystemExit(f"two_files: cuguest/c.h does not declare {', '.join(written)}")
    return "\n".join(out)


def declarations(driver):
    """`driver`, the text of lib/no_toolkit/cuda.h, with handles and codes that convert."""
    text = re.sub(r"#include.*\n", "", driver)
    for handle in HANDLES:
        text, count = re.subn(rf"typedef (struct \w+)\* {handle};", rf"using {handle} = internal::AnyHandle<\1>;", text)
        if count != 1:
            raise SystemExit(f"two_files: lib/no_toolkit/cuda.h does not declare {handle} as a pointer")
    for code, kind in CODES.items():
        text, count = re.subn(rf"typedef (enum \w+) \{{([^}}]*)\}} {code};", rf"\1 {{\2}};\nusing {code} = internal::{kind}<\1>;", text)
        if count != 1:
            raise SystemExit(f"two_files: lib/no_toolkit/cuda.h does not declare {code} as an enumeration")
    return text


def expected(driver):
    """The declarations of EXPECTED, as the driver's header has them."""
    lines = [re.search(rf"^typedef [^;{{]*\b{name};\n|^typedef enum \w+ \{{[^}}]*\}} {name};\n", driver, re.M).group(0)
             for name in EXPECTED]
    return "".join(lines).replace("CUdevice_v1", "int").replace("CUdeviceptr_v2", "unsigned long long")


def renamed(text):
    """What stands before and behind `text`: the driver's names in it are other names meanwhile."""
    ours = set(re.findall(r"^#\s*define (\w+)", text, re.M))
    names = sorted(set(re.findall(r"\b(?:CU(?!GUEST)|cu(?:da)?(?=[A-Z])|CIG_)\w+", without_comments(text))))
    before = "".join(f'#pragma push_macro("{name}")\n#undef {name}\n' +
                     (f"#define {name} cuguest_no_cuda_{name}\n" if name not in ours else "") for name in names)
    return before, "".join(f'#undef {name}\n#pragma pop_macro("{name}")\n' for name in names)
