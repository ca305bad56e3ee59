// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/code/nvrtc.h"
#include "cuguest/status.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"

namespace server {

absl::StatusOr<Nvrtc> Nvrtc::Load() {
  const std::string name = "libnvrtc.so." + std::to_string(CUDA_VERSION / 1000);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError(dlerror());
  Nvrtc table;
#define NVRTC_FIND(Name)                                                                    \
  table.Name##_ = reinterpret_cast<decltype(table.Name##_)>(dlsym(library, "nvrtc" #Name)); \
  if (table.Name##_ == nullptr) return absl::UnavailableError(name + " has no nvrtc" #Name);
  NVRTC_ENTRIES(NVRTC_FIND)
#undef NVRTC_FIND
  return table;
}

absl::StatusOr<const Nvrtc*> Nvrtc::Get() {
  static const auto& found = *new absl::StatusOr<Nvrtc>(Load());
  CUGUEST_RETURN_IF_ERROR(found);
  return &*found;
}

std::string Nvrtc::OldestArchitecture() const {
  int count = 0;
  if (GetNumSupportedArchs_(&count) != NVRTC_SUCCESS || count < 1) return "compute_75";
  std::vector<int> ascending(static_cast<std::size_t>(count));
  if (GetSupportedArchs_(ascending.data()) != NVRTC_SUCCESS) return "compute_75";
  return "compute_" + std::to_string(ascending.front());
}

std::string Nvrtc::LogOf(nvrtcProgram program) const {
  std::size_t size = 0;
  if (GetProgramLogSize_(program, &size) != NVRTC_SUCCESS || size == 0) return "";
  std::string log(size, '\0');
  if (GetProgramLog_(program, &log[0]) != NVRTC_SUCCESS) return "";
  log.resize(size - 1);  // without its NUL
  return log;
}

absl::StatusOr<std::string> Nvrtc::Compile(const std::string& source,
                                           const std::string& name) const {
  nvrtcProgram program = nullptr;
  nvrtcResult result = CreateProgram_(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS) return absl::InternalError(GetErrorString_(result));
  const auto destroy = [this](nvrtcProgram* p) { DestroyProgram_(p); };
  const std::unique_ptr<nvrtcProgram, decltype(destroy)> owner(&program, destroy);

  const std::string architecture = "--gpu-architecture=" + OldestArchitecture();
  const char* const options[] = {architecture.c_str()};
  result = CompileProgram_(program, 1, options);
  if (result != NVRTC_SUCCESS) {
    return absl::InvalidArgumentError("compile " + name + ": " + GetErrorString_(result) + "\n" +
                                      LogOf(program));
  }
  std::size_t size = 0;
  result = GetPTXSize_(program, &size);
  if (result != NVRTC_SUCCESS) return absl::InternalError(GetErrorString_(result));
  std::string ptx(size, '\0');
  result = GetPTX_(program, &ptx[0]);
  if (result != NVRTC_SUCCESS) return absl::InternalError(GetErrorString_(result));
  return ptx;
}

}  // namespace server
