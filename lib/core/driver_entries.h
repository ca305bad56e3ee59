// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names and versions of the entries of a driver table, which the lists of X(...) in
// driver_table.h and objects/driver.h say.                                             tier: 0

#ifndef CUGUEST_LIB_CORE_DRIVER_ENTRIES_H_
#define CUGUEST_LIB_CORE_DRIVER_ENTRIES_H_

#include <cstddef>
#include <cstdint>

#include "cuguest/driver_table.h"
#include "lib/core/string_pool.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// An entry of a table.
struct DriverEntry {
  const char* name = nullptr;    // "cuMemAlloc"
  const char* suffix = nullptr;  // what its symbol adds: "_v2"
  std::size_t offset = 0;        // in the table
  int version = 0;               // 3020
};

// All of a table, packed: in the order of its members, the required ones first.
struct DriverEntries {
  static constexpr std::uint16_t kHasSuffix = 0x8000;  // besides the version

  const char* names;  // behind each other, and behind one that has it its suffix
  const std::uint16_t* versions;
  std::size_t count;
  std::size_t required;
  std::size_t offset;  // of the first one

  DriverEntry First() const noexcept;
  // Without a name behind the last one.
  DriverEntry Next(const DriverEntry& entry) const noexcept;
  // Without a name if no entry is at `offset`.
  DriverEntry At(std::size_t offset) const noexcept;
  bool IsRequired(const DriverEntry& entry) const noexcept {
    return entry.offset < offset + required * sizeof(void*);
  }
};

// For the compiler alone.
struct NamedEntry {
  const char* name;
  const char* suffix;  // what its symbol adds
  std::uint16_t version;

  constexpr bool HasSuffix() const { return suffix[0] != '\0'; }
};
#define CUGUEST_NAMED_ENTRY(Name, version, suffix, parameters) {"cu" #Name, suffix, version},
#define CUGUEST_ONE_ENTRY(Name, version, suffix, parameters) +1

template <std::size_t kRows>
constexpr std::size_t BytesOfNames(const NamedEntry (&rows)[kRows]) {
  std::size_t bytes = 0;
  for (const NamedEntry& row : rows) {
    bytes += BytesOf(row.name) + (row.HasSuffix() ? BytesOf(row.suffix) : 0);
  }
  return bytes;
}

template <std::size_t kRows, std::size_t kBytes>
struct PackedEntries {
  constexpr explicit PackedEntries(const NamedEntry (&rows)[kRows]) {
    for (std::size_t i = 0; i < kRows; ++i) {
      names.Add(rows[i].name);
      versions[i] = rows[i].version;
      if (!rows[i].HasSuffix()) continue;
      names.Add(rows[i].suffix);
      versions[i] |= DriverEntries::kHasSuffix;
    }
  }
  StringPool<kBytes> names;
  std::uint16_t versions[kRows] = {};
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_DRIVER_ENTRIES_H_
