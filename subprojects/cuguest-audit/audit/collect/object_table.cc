// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/object_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "audit/system_object.h"

namespace cuguest::audit {
namespace {

constexpr std::size_t kMostBuildId = 64;

constexpr std::size_t kMostSoname = 256;

constexpr std::size_t kMostFunction = 512;

// As the object's dynamic section has it; "" if it has none.
const char* SonameOf(const LoadedObject& object) {
  const char* strings = nullptr;
  std::uintptr_t offset = 0;
  bool has_soname = false;
  for (const auto* entry = static_cast<const ElfW(Dyn)*>(object.dynamic);
       entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) {
      // Which the loader has moved, but for the vDSO's.
      const std::uintptr_t at = entry->d_un.d_ptr;
      strings = reinterpret_cast<const char*>(at < object.bias ? at + object.bias : at);
    } else if (entry->d_tag == DT_SONAME) {
      offset = entry->d_un.d_val;
      has_soname = true;
    }
  }
  return has_soname && strings != nullptr ? strings + offset : "";
}

bool IsSame(const LoadedObject& one, const LoadedObject& other) {
  return one.begin == other.begin && one.end == other.end && std::strcmp(one.name, other.name) == 0;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE  // <dlfcn.h> declares _dl_find_object

bool FindLinkMap(std::uintptr_t address, LoadedObject* object, const link_map** map) {
  dl_find_object found;  // not cleared: it has room for more, and to clear that takes longest here
  if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return false;
  object->begin = reinterpret_cast<std::uintptr_t>(found.dlfo_map_start);
  object->end = reinterpret_cast<std::uintptr_t>(found.dlfo_map_end);
  *map = found.dlfo_link_map;
  return true;
}

#else

bool FindLinkMap(std::uintptr_t address, LoadedObject* object, const link_map** map) {
  Dl_info info = {};
  void* extra = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, &extra, RTLD_DL_LINKMAP) == 0) return false;
  object->begin = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  object->end = object->begin;  // not known
  *map = static_cast<const link_map*>(extra);
  return *map != nullptr;
}

#endif

// Into `text`, as hexadecimal; empty if the object has none, or is mapped without its headers.
void ReadBuildId(const LoadedObject& object, char* text) {
  *text = '\0';
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(object.begin);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(object.begin + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const std::uint8_t*>(object.bias + segments[i].p_vaddr);
    const std::uint8_t* end = at + segments[i].p_memsz;
    while (at + sizeof(ElfW(Nhdr)) < end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const std::uint8_t* name = at + sizeof(*note);
      const std::uint8_t* value = name + ((note->n_namesz + 3) & ~3u);
      at = value + ((note->n_descsz + 3) & ~3u);
      const bool is_build_id = note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                               std::memcmp(name, "GNU", 4) == 0;
      if (!is_build_id || at > end || note->n_descsz > kMostBuildId / 2) continue;
      for (std::size_t k = 0; k < note->n_descsz; ++k) {
        std::snprintf(text + 2 * k, 3, "%02x", value[k]);
      }
      return;
    }
  }
}

// How much of `path` is the outermost package of Python around it; 0: it is in none. Packages
// without an __init__.py are not told from other folders.
std::size_t PackageOf(const char* path) {
  const int error = errno;
  std::size_t package = 0;
  char probe[4096 + 16];
  for (std::size_t end = std::strlen(path); end > 0;) {
    do {
      --end;
    } while (end > 0 && path[end] != '/');
    std::snprintf(probe, sizeof(probe), "%.*s/__init__.py", static_cast<int>(end), path);
    if (end == 0 || access(probe, F_OK) != 0) break;
    package = end;
  }
  errno = error;
  return package;
}

// The dynamic linker has "" for the program, and may have a relative path.
void MakePath(const char* name, char* path, std::size_t size) {
  const bool is_relative = *name != '/' && std::strchr(name, '/') != nullptr;
  if (*name == '\0') {
    const ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
  } else if (is_relative && getcwd(path, size) != nullptr) {
    const std::size_t length = std::strlen(path);
    std::snprintf(path + length, size - length, "/%s", name);
  } else {
    std::snprintf(path, size, "%s", name);
  }
}

}  // namespace

bool FindLoaded(std::uintptr_t address, LoadedObject* object) {
  const link_map* map = nullptr;
  if (!FindLinkMap(address, object, &map)) return false;
  object->bias = map->l_addr;
  object->name = map->l_name;
  object->dynamic = map->l_ld;
  return true;
}

const KnownObject* ObjectTable::Find(std::uintptr_t address) {
  LoadedObject loaded;
  if (!FindLoaded(address, &loaded)) return nullptr;
  const KnownObject* known = FindKnown(loaded);
  if (known != nullptr) return known;
  const std::lock_guard<std::mutex> lock(mutex_);
  known = FindKnown(loaded);
  return known != nullptr ? known : Add(loaded);
}

bool ObjectTable::IsStill(const KnownObject& object, std::uintptr_t address) {
  LoadedObject loaded;
  return FindLoaded(address, &loaded) && IsSame(loaded, object.loaded);
}

// Objects have their places by where they begin, or the next free ones.
std::size_t ObjectTable::PlaceOf(const LoadedObject& loaded) {
  return (loaded.begin / 4096 * 0x9E3779B97F4A7C15u >> 32) % kMaxObjects;
}

const KnownObject* ObjectTable::FindKnown(const LoadedObject& loaded) const {
  for (std::size_t place = PlaceOf(loaded);; place = (place + 1) % kMaxObjects) {
    const KnownObject* known = objects_[place].load(std::memory_order_acquire);
    if (known == nullptr || IsSame(known->loaded, loaded)) return known;
  }
}

const KnownObject* ObjectTable::Add(const LoadedObject& loaded) {
  if (count_ == kMaxObjects / 2) {
    is_full_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  auto* known = new (std::nothrow) KnownObject;
  char* name = strdup(loaded.name);
  if (known == nullptr || name == nullptr) return nullptr;
  known->loaded = loaded;
  known->loaded.name = name;
  known->number = ++numbers_;
  ++count_;
  const SystemRole role = RoleOf(SonameOf(loaded), loaded.name);
  known->passes_on = role == SystemRole::kPassesOn || role == SystemRole::kInterpreter;
  known->is_runtime = role == SystemRole::kRuntime;
  known->is_hidden = known->is_runtime || role == SystemRole::kDriver || role == SystemRole::kTool;
  std::size_t place = PlaceOf(loaded);
  while (objects_[place].load(std::memory_order_relaxed) != nullptr) {
    place = (place + 1) % kMaxObjects;
  }
  objects_[place].store(known, std::memory_order_release);
  return known;
}

const KnownObject* ObjectTable::FindKnownFunction(std::size_t place, const char* file,
                                                  const char* name) const {
  for (;; place = (place + 1) % kMaxFunctions) {
    const KnownObject* known = functions_[place].load(std::memory_order_acquire);
    if (known == nullptr ||
        (std::strcmp(known->function, name) == 0 && std::strcmp(known->loaded.name, file) == 0)) {
      return known;
    }
  }
}

const KnownObject* ObjectTable::FindFunction(const char* file, const char* name) {
  std::uint64_t hash = 0;
  for (const char* text : {file, name}) {
    for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
  }
  std::size_t place = hash % kMaxFunctions;
  if (const KnownObject* known = FindKnownFunction(place, file, name)) return known;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const KnownObject* known = FindKnownFunction(place, file, name)) return known;
  // One less than half, so that all numbers are below 2^13.
  if (function_count_ == kMaxFunctions / 2 - 1) {
    has_too_many_functions_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  auto* known = new (std::nothrow) KnownObject;
  if (known == nullptr) return nullptr;
  known->loaded.name = strdup(file);
  known->function = strdup(name);
  if (known->loaded.name == nullptr || known->function == nullptr) return nullptr;
  known->number = ++numbers_;
  ++function_count_;
  while (functions_[place].load(std::memory_order_relaxed) != nullptr) {
    place = (place + 1) % kMaxFunctions;
  }
  functions_[place].store(known, std::memory_order_release);
  return known;
}

void ObjectTable::TellLimits(std::uint32_t epoch, ChannelWriter* writer) {
  const auto tell = [&](const std::atomic<bool>& is_reached, std::atomic<std::uint32_t>* told_in,
                        const char* text) {
    if (is_reached.load(std::memory_order_relaxed) && told_in->exchange(epoch) != epoch) {
      writer->WriteNote(RecordKind::kLimit, text);
    }
  };
  tell(is_full_, &told_full_in_,
       "more than 4096 libraries were loaded: calls from further ones have no known caller");
  tell(has_too_many_functions_, &told_functions_in_,
       "more than 4095 functions of Python called: further ones are left out of call chains");
  tell(has_cut_chain_, &told_cut_in_,
       "a call chain had more than 1024 frames: the outer ones are left out");
}

void ObjectTable::Define(const KnownObject& object, std::uint32_t epoch, ChannelWriter* writer) {
  if (object.defined_in.load(std::memory_order_relaxed) == epoch) return;
  constexpr std::size_t kMostPath = 4096;
  char text[kMostPath + 2 * kMostBuildId + kMostSoname + kMostFunction + 32];
  // Each ends with a zero.
  MakePath(object.loaded.name, text, kMostPath);
  std::size_t size = std::strlen(text) + 1;
  const std::size_t package = PackageOf(text);
  const bool is_loaded = object.function == nullptr;
  text[size] = '\0';
  if (is_loaded) ReadBuildId(object.loaded, text + size);
  size += std::strlen(text + size) + 1;
  // Before it is unloaded: the object is on the stack.
  std::snprintf(text + size, kMostSoname, "%s", is_loaded ? SonameOf(object.loaded) : "");
  size += std::strlen(text + size) + 1;
  std::snprintf(text + size, 32, "%zu", package);
  size += std::strlen(text + size) + 1;
  std::snprintf(text + size, kMostFunction, "%s", is_loaded ? "" : object.function);
  size += std::strlen(text + size);
  if (writer->WriteText(RecordKind::kObject, object.number, text, size)) {
    object.defined_in.store(epoch, std::memory_order_relaxed);
  }
}

void ObjectTable::UnlockInChild() { new (&mutex_) std::mutex; }

}  // namespace cuguest::audit
