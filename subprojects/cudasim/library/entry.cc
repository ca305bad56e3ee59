// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/library/entry.h"

#include "lib/sim/library/book.h"
#include "lib/sim/runtime/context.h"
#include "lib/sim/runtime/driver.h"

namespace cuguest_sim_library {
namespace {

cuguest_sim::CallBook book;

}  // namespace

CUresult BindContext() {
  cudaError_t code = cuguest_sim_runtime::EnsureDriver();
  if (code == cudaSuccess) code = cuguest_sim_runtime::BindContext();
  return static_cast<CUresult>(code);
}

cuguest_sim::CallBook& TheBook() { return book; }

int Enter(size_t row) {
  book.Count(row);
  const int injected = book.TakeFault(row);
  if (injected != 0 || Entries().begin_row[row].floor == Floor::kNothing) return injected;
  return RefusalOf(BindContext());
}

}  // namespace cuguest_sim_library
