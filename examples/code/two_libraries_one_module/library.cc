// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library with a copy of cuguest and a copy of the code of its own. It is built twice.

#include "examples/code/two_libraries_one_module/library.h"

#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/driver.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/stream.h"
#include "cuguest/status.h"
#include "kernels/launch.h"

namespace {

using cuguest::DeviceView;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::StreamRef;

struct Code {
  Module module;
  Kernel count_up;
};
// A plain pointer, so that unloading the library runs no destructor.
Code* g_code = nullptr;

absl::Status LoadCode() {
  Code code;
  CUGUEST_ASSIGN_OR_RETURN(code.module, Module::Load({cuguest_kernels::launch_fatbin,
                                                      cuguest_kernels::launch_fatbin_size},
                                                     "launch"));
  CUGUEST_ASSIGN_OR_RETURN(code.count_up, code.module.GetKernel("count_up"));
  g_code = new Code(std::move(code));
  return absl::OkStatus();
}

// The kernel first: it keeps the code loaded.
absl::Status UnloadCode() {
  Code* const code = std::exchange(g_code, nullptr);
  code->count_up = Kernel();
  absl::Status status = code->module.Release();
  delete code;
  return status;
}

absl::Status CountUp(CUdeviceptr counts, size_t size, unsigned value, CUstream stream) {
  CUGUEST_ASSIGN_OR_RETURN(const auto view, DeviceView<unsigned>::Borrow(counts, size));
  return cuguest::LaunchForElements(g_code->count_up, size, stream, static_cast<unsigned>(size),
                                    value, view);
}

absl::StatusOr<DeviceView<unsigned>> MarkIn(CUstream callers) {
  CUGUEST_ASSIGN_OR_RETURN(const StreamRef stream, StreamRef::Borrow(callers));
  return g_code->module.GetGlobal<unsigned>(stream.context(), "launch_mark");
}

const char* Say(const absl::Status& status) {
  static thread_local char text[1000];
  if (status.ok()) return nullptr;
  std::snprintf(text, sizeof(text), "%s", std::string(status.message()).c_str());
  return text;
}

const char* Load() { return Say(LoadCode()); }
const char* Unload() { return Say(UnloadCode()); }

const char* Count(CUdeviceptr counts, size_t size, unsigned value, CUstream stream) {
  return Say(CountUp(counts, size, value, stream));
}

const char* SetMark(unsigned mark, CUstream stream) {
  const absl::StatusOr<DeviceView<unsigned>> variable = MarkIn(stream);
  return Say(variable.ok() ? cuguest::Fill(*variable, mark) : variable.status());
}

const char* GetMark(unsigned* mark, CUstream stream) {
  const absl::StatusOr<DeviceView<unsigned>> variable = MarkIn(stream);
  if (!variable.ok()) return Say(variable.status());
  return Say(cuguest::Download(*variable, cuguest::HostSpan<unsigned>(mark, 1)));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const Library* GetLibrary() {
  static const Library library = {&Load, &Count, &SetMark, &GetMark, &Unload};
  return &library;
}
