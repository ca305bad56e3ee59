// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By elfutils. Each object is opened as if it were loaded at address 0, so that offsets are
// addresses.

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "audit/command/symbols.h"

namespace cuguest::audit {

namespace {

std::string BuildIdOf(Dwfl_Module* module) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int size = dwfl_module_build_id(module, &bits, &address);
  std::string text;
  for (int i = 0; i < size; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[bits[i] >> 4];
    text += kDigits[bits[i] & 15];
  }
  return text;
}

// Where debuginfod's client keeps what it fetched.
std::string DebuginfodCache() {
  if (const char* path = std::getenv("DEBUGINFOD_CACHE_PATH")) return path;
  if (const char* path = std::getenv("XDG_CACHE_HOME")) {
    return std::string(path) + "/debuginfod_client";
  }
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "" : home) + "/.cache/debuginfod_client";
}

// By build id, by .gnu_debuglink, and in debuginfod's cache. elfutils itself looks into the cache
// only where DEBUGINFOD_URLS is set, since it may ask a server then.
int FindDebugInfo(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base,
                  const char* file, const char* link, GElf_Word link_crc, char** found) {
  const int opened =
      dwfl_standard_find_debuginfo(module, data, name, base, file, link, link_crc, found);
  if (opened >= 0) return opened;
  const std::string build_id = BuildIdOf(module);
  if (build_id.empty()) return -1;
  const std::string cached = DebuginfodCache() + "/" + build_id + "/debuginfo";
  const int descriptor = open(cached.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) *found = strdup(cached.c_str());
  return descriptor;
}

constexpr Dwfl_Callbacks kCallbacks = {
    nullptr,
    FindDebugInfo,
    dwfl_offline_section_address,
    nullptr,
};

void SetName(const char* symbol, Function* function) {
  function->symbol = symbol;
  function->name = WithoutParameters(Demangled(symbol));
}

// The function that an inlined one is an instance of, or that a definition was declared as.
Dwarf_Die OriginOf(Dwarf_Die* die) {
  Dwarf_Die origin = *die;
  for (const unsigned name : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    if (dwarf_attr(&origin, name, &attribute) != nullptr &&
        dwarf_formref_die(&attribute, &next) != nullptr) {
      origin = next;
    }
  }
  return origin;
}

// "ns::Class::" of a function that is declared there.
std::string ScopeOf(Dwarf_Die* function) {
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(function, &scopes);
  std::string text;
  for (int i = 1; i < count; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    const char* name = dwarf_diename(&scopes[i]);
    if (tag == DW_TAG_namespace && name == nullptr) name = "(anonymous namespace)";
    const bool is_scope = tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
                          tag == DW_TAG_structure_type || tag == DW_TAG_subprogram;
    if (is_scope && name != nullptr) text.insert(0, std::string(name) + "::");
  }
  std::free(scopes);
  return text;
}

// The name that the linker knows it by, or else the one of the source: a static function has no
// other where it is inlined.
void SetName(Dwarf_Die* die, Function* function) {
  Dwarf_Attribute attribute;
  const char* symbol = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
  if (symbol != nullptr) return SetName(symbol, function);
  Dwarf_Die origin = OriginOf(die);
  const char* name = dwarf_diename(&origin);
  if (name == nullptr) return;
  function->symbol = name;
  function->name = ScopeOf(&origin) + name;
}

// The file that a function was inlined in, by its number.
std::string CallFile(Dwarf_Die* unit, Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) != 0 ||
      dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count) {
    return "";
  }
  const char* path = dwarf_filesrc(files, number, nullptr, nullptr);
  return path == nullptr ? "" : path;
}

// The compilation unit of an address. elfutils finds it by .debug_aranges, which clang does not
// write, and without it only since 0.191.
Dwarf_Die* UnitAt(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr* bias) {
  if (Dwarf_Die* unit = dwfl_module_addrdie(module, address, bias)) return unit;
  Dwarf_Die* unit = nullptr;
  do {
    unit = dwfl_module_nextcu(module, unit, bias);
  } while (unit != nullptr && dwarf_haspc(unit, address - *bias) != 1);
  return unit;
}

void SetPlace(Dwarf_Die* unit, Dwarf_Addr address, Function* function) {
  Dwarf_Line* line = dwarf_getsrc_die(unit, address);
  if (line == nullptr) return;
  dwarf_lineno(line, &function->line);
  const char* path = dwarf_linesrc(line, nullptr, nullptr);
  if (path != nullptr) function->file = path;
  Dwarf_Attribute attribute;
  const char* folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
  if (folder != nullptr) function->folder = folder;
}

int CallLine(Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word line = 0;
  dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line);
  return static_cast<int>(line);
}

// Appends the functions that were inlined at `address`, and moves `place`, which is the place of
// the innermost one, to the call of the outermost one.
void AddInlined(Dwarf_Die* unit, Dwarf_Addr address, Function* place,
                std::vector<Function>* functions) {
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes(unit, address, &scopes);
  for (int i = 0; i < count; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    if (tag == DW_TAG_subprogram && place->name.empty()) SetName(&scopes[i], place);
    if (tag == DW_TAG_subprogram) break;
    if (tag != DW_TAG_inlined_subroutine) continue;
    Function inlined = *place;
    inlined.inlined = true;
    SetName(&scopes[i], &inlined);
    functions->push_back(inlined);
    place->file = CallFile(unit, &scopes[i]);
    place->line = CallLine(&scopes[i]);
  }
  std::free(scopes);
}

}  // namespace

struct Symbols::File {
  ~File() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }

  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;  // null: there is no such object, or it is another one
};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

std::string Symbols::Unavailable() { return ""; }

Symbols::File* Symbols::Open(const Object& object) {
  std::unique_ptr<File>& file = files_[object.path];
  if (file != nullptr) return file.get();
  file = std::make_unique<File>();
  file->dwfl = dwfl_begin(&kCallbacks);
  if (file->dwfl == nullptr) return file.get();
  const std::string& path = object.file.empty() ? object.path : object.file;
  dwfl_report_begin(file->dwfl);
  Dwfl_Module* module = dwfl_report_elf(file->dwfl, path.c_str(), path.c_str(), -1, 0, true);
  dwfl_report_end(file->dwfl, nullptr, nullptr);
  const bool is_same =
      module != nullptr && (object.build_id.empty() || object.build_id == BuildIdOf(module));
  file->module = is_same ? module : nullptr;
  return file.get();
}

std::vector<Function> Symbols::Of(const Object* object, std::uint64_t offset) {
  Function own;
  own.offset = offset;
  if (object == nullptr) return {own};
  own.object = object->path;
  std::vector<Function>& functions = known_[{object->path, offset}];
  if (!functions.empty()) return functions;
  File* file = Open(*object);
  if (file->module != nullptr && offset != 0) {
    const Dwarf_Addr address = offset - 1;  // of the call that returns there
    GElf_Off in_symbol = 0;
    GElf_Sym symbol;
    const char* name =
        dwfl_module_addrinfo(file->module, address, &in_symbol, &symbol, nullptr, nullptr, nullptr);
    if (name != nullptr) SetName(name, &own);
    Dwarf_Addr bias = 0;
    if (Dwarf_Die* unit = UnitAt(file->module, address, &bias)) {
      SetPlace(unit, address - bias, &own);
      AddInlined(unit, address - bias, &own, &functions);
    }
  }
  functions.push_back(own);
  return functions;
}

}  // namespace cuguest::audit
