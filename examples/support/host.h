// SPDX-License-Identifier: Apache-2.0
//
// What the hosts of the examples do with contexts, in bare driver calls, as a program
// does that has never heard of cuguest. (They too call through the table, so that an
// example starts, and says what is missing, on a machine without a driver.)

#ifndef CUGUEST_EXAMPLES_SUPPORT_HOST_H_
#define CUGUEST_EXAMPLES_SUPPORT_HOST_H_

#include <cuda.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"

// The driver's function that <cuda.h> means by `name` (DRIVER(cuMemAllocHost) is
// cuMemAllocHost_v2): for what hosts do and a guest has no business with, which cuguest's
// table therefore lacks. nullptr where this driver has none.
#define DRIVER(name) ::support::FindEntry<decltype(&::name)>(DRIVER_SYMBOL_(name))
#define DRIVER_SYMBOL_(symbol) #symbol

namespace support {

[[nodiscard]] void* FindSymbol(const char* symbol);
template <typename Function>
[[nodiscard]] Function FindEntry(const char* symbol) {
  return reinterpret_cast<Function>(FindSymbol(symbol));
}

// What cudaDeviceReset() comes down to.
CUresult ResetDevice(cuguest::Device device);

// Whether the primary context of `device` is active, and that in words for the pictures.
[[nodiscard]] bool IsActive(cuguest::Device device);
[[nodiscard]] const char* Activity(cuguest::Device device);

// Its handle, which stays the same over all its lives. Makes it for that if need be, and
// ends it again.
[[nodiscard]] absl::StatusOr<CUcontext> HandleOfPrimary(cuguest::Device device);

// A context that the host made with cuCtxCreate and took off its stack again.
class HostContext {
 public:
  [[nodiscard]] static absl::StatusOr<HostContext> Create(const cuguest::Driver& driver,
                                                          cuguest::Device device);
  HostContext(HostContext&& other) noexcept
      : driver_(other.driver_), context_(std::exchange(other.context_, nullptr)) {}
  HostContext& operator=(HostContext&& other) noexcept;
  ~HostContext() { Destroy(); }

  [[nodiscard]] CUcontext get() const { return context_; }

  // Forgets a context that somebody else destroyed.
  void Leak() { context_ = nullptr; }

 private:
  HostContext(const cuguest::Driver* driver, CUcontext context)
      : driver_(driver), context_(context) {}
  void Destroy();

  const cuguest::Driver* driver_;
  CUcontext context_;
};

// The calling thread's stack for a scope: what the host has pushed, bottom first.
// Declare it after the contexts: it empties the stack before they are destroyed.
class HostStack {
 public:
  HostStack(const cuguest::Driver& driver, const std::vector<CUcontext>& bottom_first)
      : driver_(driver) {
    Set(bottom_first);
  }
  HostStack(const HostStack&) = delete;
  HostStack& operator=(const HostStack&) = delete;
  ~HostStack() { Set({}); }

  // Throws away what is there, and pushes these.
  void Set(const std::vector<CUcontext>& bottom_first);

 private:
  const cuguest::Driver& driver_;
};

// 0, step, 2 * step, ...: a thousand whole numbers, which floats hold and add exactly.
[[nodiscard]] std::vector<float> Ramp(int step);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_HOST_H_
