// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host's side of an example needs, in one header: contexts with names, the stack of the
// calling thread, and rows that show and check it. It makes driver calls, as a program without
// cuguest does. (They go through cuguest's table all the same, so that an example also starts on a
// machine without a driver, and reports that.)

#ifndef CUGUEST_EXAMPLES_SUPPORT_STAGE_H_
#define CUGUEST_EXAMPLES_SUPPORT_STAGE_H_

#include <cuda.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cuguest/device.h"
#include "cuguest/objects/driver.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"

// The driver's function that <cuda.h> means by `name` (DRIVER(cuMemAllocHost) is
// cuMemAllocHost_v2), for those that cuguest's table does not have. nullptr if the driver has none.
#define DRIVER(name) \
  reinterpret_cast<decltype(&::name)>(::support::FindSymbol(DRIVER_SYMBOL_(name)))
#define DRIVER_SYMBOL_(symbol) #symbol

namespace support {

[[nodiscard]] void* FindSymbol(const char* symbol);

// A host's contexts, by their names. A call that fails is a failed check.
//
// Threads: the const functions from any.
class Stage {
 public:
  // Creates each with cuCtxCreate and pops it. But P is the device's primary context: its handle,
  // which is the same for every incarnation, and no reference to it.
  Stage(const cuguest::ObjectDriver& driver, cuguest::Device device,
        const std::vector<std::string>& names);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();  // empties the calling thread's stack, and destroys what was created

  [[nodiscard]] CUcontext operator[](const std::string& name) const;

  // Gives a context of somebody else's a name.
  void Name(const std::string& name, CUcontext context);

  // Also creates one again that other code destroyed.
  void Create(const std::string& name);
  void Destroy(const std::string& name);

  // The calling thread's stack becomes these, bottom first.
  void Set(const std::vector<std::string>& names) const;

  // The calling thread's stack, from the bottom up; the mark stands at the top, the current
  // context: "[X] [A] [B]<".
  [[nodiscard]] std::string Draw() const;

  // The same as a row of the output. Returns whether it is `expected`; and where the remark is
  // "P is active" or "P is inactive", whether it is so.
  [[nodiscard]] bool Shows(const std::string& when, const std::string& expected,
                           const std::string& remark = "") const;

 private:
  const cuguest::ObjectDriver& driver_;
  const cuguest::Device device_;
  std::map<std::string, CUcontext> named_;
  std::set<std::string> created_;
};

// The host is left undisturbed in this scope, or a check fails.
class Undisturbed {
 public:
  explicit Undisturbed(const char* file = __builtin_FILE(), int line = __builtin_LINE());

 private:
  const cuguest::testing::UndisturbedScope scope_;
};

// Whether the primary context of `device` is active.
[[nodiscard]] bool IsActive(cuguest::Device device);

// As cudaDeviceReset() does.
CUresult ResetDevice(cuguest::Device device);

// 0, step, 2 * step, ...: a thousand whole numbers, which floats hold and add exactly.
[[nodiscard]] std::vector<float> Ramp(int step);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_STAGE_H_
