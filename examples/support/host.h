// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the hosts of the examples do with contexts, in driver calls, as a program without cuguest
// does. (They call through cuguest's table all the same, so that an example also starts on a
// machine without a driver, and reports that.)

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
// cuMemAllocHost_v2), for those that cuguest's table does not have. nullptr if the driver has none.
#define DRIVER(name) ::support::FindEntry<decltype(&::name)>(DRIVER_SYMBOL_(name))
#define DRIVER_SYMBOL_(symbol) #symbol

namespace support {

[[nodiscard]] void* FindSymbol(const char* symbol);
template <typename Function>
[[nodiscard]] Function FindEntry(const char* symbol) {
  return reinterpret_cast<Function>(FindSymbol(symbol));
}

// As cudaDeviceReset() does.
CUresult ResetDevice(cuguest::Device device);

// Whether the primary context of `device` is active; the same as text.
[[nodiscard]] bool IsActive(cuguest::Device device);
[[nodiscard]] const char* Activity(cuguest::Device device);

// Its handle, which is the same for every incarnation. Retains it, and releases it again.
[[nodiscard]] absl::StatusOr<CUcontext> HandleOfPrimary(cuguest::Device device);

// A context that the host created with cuCtxCreate and popped.
class HostContext {
 public:
  [[nodiscard]] static absl::StatusOr<HostContext> Create(const cuguest::Driver& driver,
                                                          cuguest::Device device);
  HostContext(HostContext&& other) noexcept
      : driver_(other.driver_), context_(std::exchange(other.context_, nullptr)) {}
  HostContext& operator=(HostContext&& other) noexcept;
  ~HostContext() { Destroy(); }

  [[nodiscard]] CUcontext get() const { return context_; }

  // For a context that was destroyed elsewhere.
  void Leak() { context_ = nullptr; }

 private:
  HostContext(const cuguest::Driver* driver, CUcontext context)
      : driver_(driver), context_(context) {}
  void Destroy();

  const cuguest::Driver* driver_;
  CUcontext context_;
};

// The calling thread's stack for a scope, bottom first. Declare it after the contexts: it empties
// the stack before they are destroyed.
class HostStack {
 public:
  HostStack(const cuguest::Driver& driver, const std::vector<CUcontext>& bottom_first)
      : driver_(driver) {
    Set(bottom_first);
  }
  HostStack(const HostStack&) = delete;
  HostStack& operator=(const HostStack&) = delete;
  ~HostStack() { Set({}); }

  // Pops everything, and pushes these.
  void Set(const std::vector<CUcontext>& bottom_first);

 private:
  const cuguest::Driver& driver_;
};

// 0, step, 2 * step, ...: a thousand whole numbers, which floats hold and add exactly.
[[nodiscard]] std::vector<float> Ramp(int step);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_HOST_H_
