// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host's side of an example needs, in one header: contexts with names, the stack of the
// calling thread, and rows that show and check it.

#ifndef CUGUEST_EXAMPLES_SUPPORT_STAGE_H_
#define CUGUEST_EXAMPLES_SUPPORT_STAGE_H_

#include <cuda.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace support {

// A host's contexts, by their names, each created with cuCtxCreate and popped. Destroyed at the
// end, with the calling thread's stack empty. A call that fails is a failed check.
class Stage {
 public:
  Stage(const cuguest::Driver& driver, cuguest::Device device,
        const std::vector<std::string>& names);

  [[nodiscard]] CUcontext operator[](const std::string& name) const;

  // The calling thread's stack becomes these, bottom first. Threads: any.
  void Set(const std::vector<std::string>& names);

  // Gives a context of somebody else's a name.
  void Name(const std::string& name, CUcontext context);

  void Destroy(const std::string& name);
  // For one that other code destroyed: creates another one.
  void Renew(const std::string& name);

  // The calling thread's stack. Threads: any.
  [[nodiscard]] std::string Draw() const { return cast_.Draw(); }
  // The same as a row of the output. Returns whether it is `expected`.
  [[nodiscard]] bool Shows(const std::string& when, const std::string& expected,
                           const std::string& remark = "") const;

 private:
  void Create(const std::string& name);

  const cuguest::Driver& driver_;
  const cuguest::Device device_;
  std::map<std::string, HostContext> created_;
  std::map<std::string, CUcontext> named_;
  Cast cast_;
  HostStack stack_;
};

// The host is left undisturbed in this scope, or a check fails.
class Undisturbed {
 private:
  const cuguest::testing::UndisturbedScope scope_{&ReportDisturbance};
};

// Prints "refused", the driver's error code if `status` has one, and the message.
void PrintRefusal(const std::string& when, const absl::Status& status);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_STAGE_H_
