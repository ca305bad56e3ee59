// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every exported call of a simulated library does first, and the table of all of
// them. Each of the libraries has its own copy of everything here, as each real one
// embeds its own runtime.

#ifndef CUDASIM_LIBRARY_ENTRY_H_
#define CUDASIM_LIBRARY_ENTRY_H_

#include <cuda.h>

#include <cstddef>

#include "driver/call_book.h"

namespace cudasim::library {

// What an entry needs before it begins.
enum class Floor {
  kNothing,
  kContext,  // a living current context: see runtime/context.h
};

struct Entry {
  const char* name;  // "cublasSgemm_v2", which is also the symbol
  Floor floor;
};

struct EntryTable {
  const Entry* begin_row;
  size_t count;
  const Entry* begin() const { return begin_row; }
  const Entry* end() const { return begin_row + count; }
};

// Each library defines these three: its entries, its code for a floor that could not be
// established (0 only for success), and the one for what is not modelled.
const EntryTable& Entries();
int RefusalOf(CUresult code);
extern const int kNotSupported;

// The counters and faults of this library; an entry is its row in Entries().
cudasim::driver::CallBook& TheBook();

// Counts the call, takes an injected fault and establishes the floor. The entry does its
// work if that is 0, and returns it otherwise.
int Enter(size_t row);

// What kContext establishes. The driver's code; the numbers of the runtime's are the same.
CUresult BindContext();

}  // namespace cudasim::library

#endif  // CUDASIM_LIBRARY_ENTRY_H_
