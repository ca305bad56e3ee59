// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/launch.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/sim/api.h"
#include "lib/sim/captures.h"
#include "lib/sim/device.h"
#include "lib/sim/library.h"
#include "lib/sim/module.h"
#include "lib/sim/panic.h"
#include "lib/sim/stream.h"
#include "lib/sim/texture.h"

namespace cuguest_sim {
namespace {

using cuguest::testing::SimKernel;
using cuguest::testing::SimLaunch;

constexpr unsigned kMaxBlock[3] = {1024, 1024, 64};
constexpr unsigned kMaxGrid[3] = {0x7fffffff, 65535, 65535};
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxShared = 48u << 10;  // more only after cuFuncSetAttribute

std::mutex kernels_mutex;
std::map<std::string, SimKernel>& Kernels() {
  static auto& kernels = *new std::map<std::string, SimKernel>;
  return kernels;
}

SimKernel KernelOf(const std::string& name) {
  const std::lock_guard<std::mutex> lock(kernels_mutex);
  const auto found = Kernels().find(name);
  if (found == Kernels().end()) {
    Panic(
        "launch of \"%s\": no host function stands in for this kernel; call "
        "Sim::RegisterKernel(\"%s\", ...)",
        name.c_str(), name.c_str());
  }
  return found->second;
}

bool IsShape(const SimLaunch& launch) {
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] == 0 || launch.grid[i] > kMaxGrid[i]) return false;
    if (launch.block[i] == 0 || launch.block[i] > kMaxBlock[i]) return false;
  }
  return launch.block[0] * launch.block[1] * launch.block[2] <= kMaxThreads &&
         launch.shared_bytes <= kMaxShared;
}

// A launch's parameters, found in one of the two forms in which they are passed.
class Parameters {
 public:
  explicit Parameters(const PtxEntry& entry) : entry_(entry) {}

  CUresult Take(void** each, void** extra) {
    if (each != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (extra != nullptr) return TakePacked(extra);
    for (size_t i = 0; i < entry_.parameters.size(); ++i) {
      if (each == nullptr || each[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      pointers_.push_back(each[i]);
    }
    return CUDA_SUCCESS;
  }

  // As the kernel reads them.
  std::vector<unsigned char> Packed() const {
    std::vector<unsigned char> bytes(entry_.PackedSize());
    for (size_t i = 0; i < pointers_.size(); ++i) {
      const PtxParameter& parameter = entry_.parameters[i];
      std::memcpy(bytes.data() + parameter.offset, pointers_[i], parameter.size);
    }
    return bytes;
  }

 private:
  CUresult TakePacked(void** extra) {
    void* buffer = nullptr;
    const size_t* size = nullptr;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
        buffer = extra[1];
      } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
        size = static_cast<const size_t*>(extra[1]);
      } else {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    if (buffer == nullptr || size == nullptr || *size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (*size > entry_.PackedSize()) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    PanicIfTooShort(*size);
    for (const PtxParameter& parameter : entry_.parameters) {
      pointers_.push_back(static_cast<char*>(buffer) + parameter.offset);
    }
    return CUDA_SUCCESS;
  }

  void PanicIfTooShort(size_t size) const {
    if (size == entry_.PackedSize()) return;
    Panic(
        "launch of \"%s\": its parameters take %zu bytes, the packed buffer has %zu; a real driver "
        "accepts it and the kernel reads garbage (measured on an H100, driver 580.159.04)",
        entry_.name.c_str(), entry_.PackedSize(), size);
  }

  const PtxEntry& entry_;
  std::vector<void*> pointers_;
};

// Runs the kernel with a copy of the parameters, which it may change.
CUresult Run(SimKernel kernel, const PtxEntry& entry, std::vector<unsigned char> packed,
             SimLaunch launch) {
  std::vector<void*> pointers;
  std::vector<size_t> sizes;
  for (const PtxParameter& parameter : entry.parameters) {
    pointers.push_back(packed.data() + parameter.offset);
    sizes.push_back(parameter.size);
  }
  launch.parameters = pointers.data();
  launch.parameter_sizes = sizes.data();
  launch.parameter_count = sizes.size();
  return kernel(launch);
}

// Its code stays after its module is unloaded, but then the graph cannot be
// instantiated again (measured on an H100, driver 580.159.04).
bool IsLoaded(CUfunction handle) {
  Function function;
  if (FindFunction(handle, &function) == CUDA_SUCCESS) return true;
  PanicHandle(handle, "the module of a kernel in the graph was unloaded; a real driver crashes");
}

// The parameters are copied now, whenever the kernel runs.
Work MakeWork(CUfunction handle, const Function& function, const Stream& stream,
              const Parameters& parameters, const SimLaunch& launch) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_KERNEL;
  work.life = stream.life;
  work.is_valid = [=] { return IsLoaded(handle); };
  const SimKernel kernel = KernelOf(function.entry->name);
  // The launch succeeds whatever the kernel does: the next call that looks finds out.
  work.run = [=, life = function.life, entry = function.entry,
              packed = parameters.Packed()](CUstream) {
    const KernelScope scope(life);
    SetStickyError(Run(kernel, *entry, packed, launch));
  };
  return work;
}

// A bad shape is the one bad argument that also costs the stream its capture.
CUresult CheckShape(const SimLaunch& launch, const Stream& stream) {
  if (IsShape(launch)) return CUDA_SUCCESS;
  Captures::Lose(stream);
  return CUDA_ERROR_INVALID_VALUE;
}

// A kernel is launched as its function in the context of the stream.
CUresult FindToLaunch(const Life& life, CUfunction* handle, Function* function) {
  if (*handle != nullptr && IsKernel(*handle)) {
    const CUresult code = FunctionOfKernel(reinterpret_cast<CUkernel>(*handle), life, handle);
    if (code != CUDA_SUCCESS) return code;
  }
  const CUresult code = FindFunction(*handle, function);
  if (code != CUDA_SUCCESS) return code;
  return function->life.id == life.id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Launch(CUfunction handle, CUstream stream_handle, void** each, void** extra,
                const SimLaunch& launch) {
  Stream stream;
  CUresult code = FindReadyStream(stream_handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  Function function;
  code = FindToLaunch(OwnerOf(stream.life), &handle, &function);
  if (code != CUDA_SUCCESS) return code;
  code = CheckShape(launch, stream);
  if (code != CUDA_SUCCESS) return code;
  Parameters parameters(*function.entry);
  code = parameters.Take(each, extra);
  if (code != CUDA_SUCCESS) return code;
  return Submit(stream_handle, stream, MakeWork(handle, function, stream, parameters, launch));
}

}  // namespace

void RegisterKernel(const char* name, SimKernel kernel) {
  const std::lock_guard<std::mutex> lock(kernels_mutex);
  Kernels()[name] = kernel;
}

CUresult LaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      CUstream handle, void** parameters, void** extra) {
  const SimLaunch launch = {
      {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, nullptr, nullptr, 0};
  return Launch(function, handle, parameters, extra, launch);
}

}  // namespace cuguest_sim
