// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "library/entry.h"

#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/not_modelled.h"

namespace cudasim::runtime {

int NotModelled(const char* symbol) {
  CountUnmodelled(symbol);
  return cudasim::library::kNotSupported;
}

}  // namespace cudasim::runtime

namespace cudasim::library {
namespace {

cudasim::driver::CallBook book;

}  // namespace

CUresult BindContext() {
  cudaError_t code = cudasim::runtime::EnsureDriver();
  if (code == cudaSuccess) code = cudasim::runtime::BindContext();
  return static_cast<CUresult>(code);
}

cudasim::driver::CallBook& TheBook() { return book; }

int Enter(size_t row) {
  book.Count(row);
  const int injected = book.TakeFault(row);
  if (injected != 0 || Entries().begin_row[row].floor == Floor::kNothing) return injected;
  return RefusalOf(BindContext());
}

}  // namespace cudasim::library
