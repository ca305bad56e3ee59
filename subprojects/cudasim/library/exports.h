// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library's exported symbols and the table of them, made from its list of entries:
//
//   X(name, Function, Floor, (parameters), (arguments))
//
// The signature of `name` is held against its declaration in the library's header, hence
// the asm label.

#ifndef CUDASIM_LIBRARY_EXPORTS_H_
#define CUDASIM_LIBRARY_EXPORTS_H_

#include <cstddef>

#include "library/entry.h"

#define CUDASIM_LIBRARY_ROW(name, Function, floor, parameters, arguments) kRow_##name,

#define CUDASIM_LIBRARY_ENTRY(name, Function, floor, parameters, arguments) \
  {#name, ::cudasim::library::Floor::floor},

#define CUDASIM_LIBRARY_EXPORT(name, Function, floor, parameters, arguments) \
  extern "C" __attribute__((visibility("default")))                          \
  Status Export_##name parameters __asm__(#name);                            \
  Status Export_##name parameters {                                          \
    const int refusal = ::cudasim::library::Enter(kRow_##name);              \
    return refusal != 0 ? static_cast<Status>(refusal) : Function arguments; \
  }                                                                          \
  static_assert(sizeof(static_cast<decltype(&Export_##name)>(&::name)) != 0);

// All below are for the library's namespace, in which `Status` is its type of code, and
// `Row` made from all its entries.
#define CUDASIM_LIBRARY_ROWS(ENTRIES) enum Row : size_t { ENTRIES(CUDASIM_LIBRARY_ROW) kRowCount };

// Constant-initialised: an entry may be called from a constructor of any library.
#define CUDASIM_LIBRARY_TABLE(ENTRIES)                                                        \
  constexpr ::cudasim::library::Entry kEntries[kRowCount] = {ENTRIES(CUDASIM_LIBRARY_ENTRY)}; \
  constexpr ::cudasim::library::EntryTable kTable = {kEntries, kRowCount};

#endif  // CUDASIM_LIBRARY_EXPORTS_H_
