// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that took the core by copying: it knows cuguest_core.h alone. The driver is whichever
// one the dynamic linker finds.

#include <cstdio>

#include "cuguest_core.h"

namespace {

CUcontext Current() { return cuguest::ContextRef::Current().get(); }

int Run() {
  const cuguest::PrimaryContext primary =
      cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0));
  if (!primary.ok()) return primary.error().code;
  const CUcontext mine = primary.context().get();
  if (mine == nullptr || Current() != nullptr) return 1;
  {
    const cuguest::ContextGuard guard(mine);
    if (!guard.ok() || Current() != mine) return 2;
    const cuguest::HostScope host(guard);
    if (Current() != nullptr) return 3;
  }
  {
    const cuguest::SharedContext shared = cuguest::SharedContext::Attach(mine);
    const cuguest::AcquiredGuard guard(cuguest::Device::Borrow(0));
    if (!shared.ok() || !guard.ok() || Current() != mine) return 4;
  }
  cuguest::PerContext<int> numbers;
  const auto made = numbers.GetOrMake(
      mine, [](const cuguest::ContextRef&) -> cuguest::ErrorOr<int> { return 7; });
  if (!made.ok() || **made != 7 || numbers.Find(mine).get() != made->get()) return 5;
  return Current() == nullptr && cuguest::IncidentCount() == 0 ? 0 : 6;
}

}  // namespace

int main() {
  const int failed = Run();
  std::printf("%s\n", failed == 0 ? "guarded" : cuguest::ErrorName(static_cast<CUresult>(failed)));
  return failed;
}
