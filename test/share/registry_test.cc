// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this build does with words that a later layout may write into the registry; see Note [The
// layout is an ABI] in lib/share/registry.h. Copies of several layouts in one process are in
// test/process/other_releases_test.cc.

#include "lib/share/registry.h"

#include "cuguest/driver.h"
#include "cuguest/shared_context.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest::ContextRef;
using cuguest::SharedContext;
using cuguest::internal::Ending;
using cuguest::internal::Reference;
using cuguest::internal::Registry;

constexpr auto kUnknownEnding = static_cast<Ending>(77);
constexpr std::uint64_t kUnknownBits = std::uint64_t{0xabcd} << 32;

bool IsAlive(CUcontext context) { return ContextRef::Borrow(context).IsAlive(); }

bool PrimaryIsActive() {
  unsigned flags = 0;
  int is_active = 0;
  CHECK(RAW(cuDevicePrimaryCtxGetState)(0, &flags, &is_active) == CUDA_SUCCESS);
  return is_active != 0;
}

// The last holder does nothing, and the slot can be joined again, and used for another context.
void UnknownEndingDestroysNothing() {
  const CUcontext context = cuguest_test::MakeContext();
  Reference opened;
  CHECK(Registry::OfProcess().JoinOrOpen(ContextRef::Borrow(context), kUnknownEnding, 0, &opened) ==
        Registry::Outcome::kOpened);
  {
    const auto joined = SharedContext::Attach(context);
    CHECK(joined.ok());
    CHECK(joined.use_count() == 2);
    CHECK(joined.owner() == SharedContext::Owner::kOther);
    CHECK(Registry::Leave(opened) == CUDA_SUCCESS);
  }
  CHECK(IsAlive(context));
  auto again = SharedContext::Attach(context);
  CHECK(again.ok());
  CHECK(again.use_count() == 1);
  CHECK(again.Release().ok());
  CHECK(IsAlive(context));
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
}

void UpperHalfOfTheDeviceIsIgnored() {
  CHECK(cuguest::Driver::GetInitialized().ok());
  CUcontext primary = nullptr;
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  Reference opened;
  CHECK(Registry::OfProcess().JoinOrOpen(ContextRef::Borrow(primary), Ending::kReleasePrimary, 0,
                                         &opened) == Registry::Outcome::kOpened);
  CHECK(opened.slot->device.load() == 0);  // an opener of this layout says nothing there
  opened.slot->device.fetch_add(kUnknownBits);
  CHECK(Registry::Leave(opened) == CUDA_SUCCESS);
  CHECK(!PrimaryIsActive());
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"unknown_ending_destroys_nothing", &UnknownEndingDestroysNothing},
          {"upper_half_of_the_device_is_ignored", &UpperHalfOfTheDeviceIsIgnored},
      });
}
