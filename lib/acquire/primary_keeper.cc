// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/primary_keeper.h"

#include "cuguest/internal/compiler.h"
#include "lib/acquire/kept_primaries.h"
#include "lib/core/failure.h"
#include "lib/share/ending.h"
#include "lib/share/owed.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

unsigned long long g_kept_primaries = 0;

namespace {

constexpr int kDevices = 64;
constexpr char kKeeper[] = "a PrimaryKeeper";

// Of a device that there cannot be: none.
unsigned long long BitOf(CUdevice device) {
  return device >= 0 && device < kDevices ? 1ULL << device : 0;
}

bool Has(const unsigned long long& kept, unsigned long long bit) {
  return (LoadAcquire(&kept) & bit) != 0;
}
// Whether the bit was set before.
bool Set(unsigned long long* kept, unsigned long long bit) {
  return (SetBits(kept, bit) & bit) != 0;
}
bool Clear(unsigned long long* kept, unsigned long long bit) {
  return (ClearBits(kept, bit) & bit) != 0;
}

// Who clears the bit has the reference; in a host function it is put back, unless another thread
// has kept one meanwhile.
Error GiveBack(unsigned long long* kept, CUdevice device) {
  if (!Clear(kept, BitOf(device))) return {};
  const CUresult code = ReleasePrimary(device);
  if (IsStillHeld(code) && Set(kept, BitOf(device))) ReleasePrimaryOrOwe(device, kKeeper);
  return OfDevice(Failure(code, "release"), Error::Subject::kPrimary, device);
}

Error GiveAllBack(unsigned long long* kept) {
  Error first;
  for (CUdevice device = 0; device < kDevices; ++device) {
    const Error error = GiveBack(kept, device);
    if (first.ok()) first = error;
  }
  return first;
}

}  // namespace

Error KeepPrimary(unsigned long long* kept, Device device) noexcept {
  const unsigned long long bit = BitOf(device.get());
  if (bit == 0) {
    return OfDevice(Failure(CUDA_ERROR_NOT_SUPPORTED, "keep"), Error::Subject::kPrimary,
                    device.get());
  }
  if (Has(*kept, bit)) return {};
  PrimaryContext primary = PrimaryContext::Retain(device);
  if (!primary.ok()) return primary.error();
  if (!Set(kept, bit)) static_cast<void>(primary.Leak());
  return {};
}

CUGUEST_END_INTERNAL_NAMESPACE
CUGUEST_BEGIN_NAMESPACE

PrimaryKeeper::~PrimaryKeeper() {
  for (CUdevice device = 0; device < internal::kDevices; ++device) {
    if (internal::Clear(&kept_, internal::BitOf(device))) {
      internal::ReleasePrimaryOrOwe(device, internal::kKeeper);
    }
  }
}

Error PrimaryKeeper::Keep(const Acquired& acquired) noexcept {
  if (!acquired.ok()) return acquired.error();
  if (!acquired.holds()) return {};
  Device device = Device::Borrow(0);
  static_cast<void>(acquired.GetDevice(&device));  // which it knows
  return internal::KeepPrimary(&kept_, device);
}

bool PrimaryKeeper::Keeps(Device device) const noexcept {
  return internal::Has(kept_, internal::BitOf(device.get()));
}

Error PrimaryKeeper::Release(Device device) noexcept {
  return internal::GiveBack(&kept_, device.get());
}

Error PrimaryKeeper::ReleaseAll() noexcept { return internal::GiveAllBack(&kept_); }

Error ReleaseKeptPrimary(Device device) noexcept {
  return internal::GiveBack(&internal::g_kept_primaries, device.get());
}

Error ReleaseKeptPrimaries() noexcept { return internal::GiveAllBack(&internal::g_kept_primaries); }

CUGUEST_END_NAMESPACE
