// SPDX-License-Identifier: Apache-2.0
//
// A library's exported symbols and the table of them, made from its list of entries:
//
//   X(name, Function, Floor, (parameters), (arguments))
//
// The signature of `name` is held against its declaration in the library's header, hence
// the asm label.

#ifndef CUGUEST_LIB_SIM_LIBRARY_EXPORTS_H_
#define CUGUEST_LIB_SIM_LIBRARY_EXPORTS_H_

#include <cstddef>

#include "lib/sim/library/entry.h"

#define CUGUEST_SIM_LIBRARY_ROW(name, Function, floor, parameters, arguments) kRow_##name,

#define CUGUEST_SIM_LIBRARY_ENTRY(name, Function, floor, parameters, arguments) \
  {#name, ::cuguest_sim_library::Floor::floor},

#define CUGUEST_SIM_LIBRARY_EXPORT(name, Function, floor, parameters, arguments) \
  extern "C" __attribute__((visibility("default")))                              \
  Status Export_##name parameters __asm__(#name);                                \
  Status Export_##name parameters {                                              \
    const int refusal = ::cuguest_sim_library::Enter(kRow_##name);               \
    return refusal != 0 ? static_cast<Status>(refusal) : Function arguments;     \
  }                                                                              \
  static_assert(sizeof(static_cast<decltype(&Export_##name)>(&::name)) != 0);

// All below are for the library's namespace, in which `Status` is its type of code, and
// `Row` made from all its entries.
#define CUGUEST_SIM_LIBRARY_ROWS(ENTRIES) \
  enum Row : size_t { ENTRIES(CUGUEST_SIM_LIBRARY_ROW) kRowCount };

// Constant-initialised: an entry may be called from a constructor of any library.
#define CUGUEST_SIM_LIBRARY_TABLE(ENTRIES)                       \
  constexpr ::cuguest_sim_library::Entry kEntries[kRowCount] = { \
      ENTRIES(CUGUEST_SIM_LIBRARY_ENTRY)};                       \
  constexpr ::cuguest_sim_library::EntryTable kTable = {kEntries, kRowCount};

#endif  // CUGUEST_LIB_SIM_LIBRARY_EXPORTS_H_
