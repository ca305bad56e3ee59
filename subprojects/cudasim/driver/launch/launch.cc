// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/launch/launch.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "driver/api.h"
#include "driver/code/library.h"
#include "driver/code/module.h"
#include "driver/context/context.h"
#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/launch/launch_config.h"
#include "driver/launch/launch_parameters.h"
#include "driver/memory/memory.h"
#include "driver/memory/reach.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"

namespace cudasim::driver {
namespace {

thread_local const RunningKernel* this_kernel = nullptr;

}  // namespace

KernelScope::KernelScope(const RunningKernel& kernel) : outer_(this_kernel) {
  this_kernel = &kernel;
}
KernelScope::~KernelScope() { this_kernel = outer_; }

const RunningKernel* ThisKernel() { return this_kernel; }

bool FindVariableOfKernel(const char* name, void** address, size_t* size) {
  std::shared_ptr<const PlacedVariables> variables;
  if (this_kernel == nullptr) return false;
  if (FindVariablesOf(this_kernel->module, &variables) != CUDA_SUCCESS) return false;
  const auto found = variables->find(name);
  if (found == variables->end()) return false;
  *address = ToPointer(found->second.address);
  if (size != nullptr) *size = found->second.size;
  return true;
}

bool KernelMayAccess(const void* address, size_t bytes) {
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  return this_kernel != nullptr && Memory::Reaches(base, bytes, Memory::kWrite) &&
         IsWithinReach(Touch::kKernel, base, bytes, Memory::kWrite, this_kernel->incarnation);
}

std::uint64_t ContextIdOfKernel() {
  return this_kernel != nullptr ? this_kernel->incarnation.id : 0;
}

namespace {

using cudasim::SimKernel;
using cudasim::SimLaunch;

std::mutex kernels_mutex;
std::map<std::string, SimKernel>& SimKernels() {
  static auto& kernels = *new std::map<std::string, SimKernel>;
  return kernels;
}
// Of kernels without a host function: whether they are skipped, and how often each was. A panic
// reports it, so that the mutex is one that no panic is called under.
std::atomic<bool> skips_unknown{false};
std::mutex skipped_mutex;
std::map<std::string, std::uint64_t>& Skipped() {
  static auto& skipped = *new std::map<std::string, std::uint64_t>;
  return skipped;
}

// nullptr for one that is to be skipped.
SimKernel KernelOf(const std::string& name) {
  const std::lock_guard<std::mutex> lock(kernels_mutex);
  const auto found = SimKernels().find(name);
  if (found != SimKernels().end()) return found->second;
  if (!skips_unknown.load()) {
    Panic(
        "launch of \"%s\": no host function is registered for this kernel; call "
        "Sim::RegisterKernel(\"%s\", ...), or Sim::SkipUnknownKernels(true)",
        name.c_str(), name.c_str());
  }
  return nullptr;
}

void CountSkipped(const std::string& name) {
  const std::lock_guard<std::mutex> lock(skipped_mutex);
  ++Skipped()[name];
}

// Runs the kernel with a copy of the parameters, which it may change.
CUresult Run(SimKernel kernel, const PtxEntry& entry, std::vector<unsigned char> packed,
             SimLaunch launch) {
  if (kernel == nullptr) {
    CountSkipped(entry.name);
    return CUDA_SUCCESS;
  }
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

// An H100 with driver 580.159.04 crashes when such a graph is instantiated, and may when an
// executable graph of it is launched: one context launched three of them and crashed at the fourth.
bool IsLoaded(CUfunction handle) {
  Function function;
  if (FindFunction(handle, &function) == CUDA_SUCCESS) return true;
  PanicHandle(handle, "the module of a kernel in the graph was unloaded; a real driver crashes");
}

// As it is done: with the block and the cluster that the function fixes.
SimLaunch ToSimLaunch(const Function& function, const LaunchConfig& config) {
  Dimensions cluster;
  static_cast<void>(FindCluster(function, config, &cluster));
  SimLaunch launch = {};
  const auto copy = [](const Dimensions& from, unsigned* to) {
    to[0] = from.x;
    to[1] = from.y;
    to[2] = from.z;
  };
  copy(config.grid, launch.grid);
  copy(BlockOf(function, config), launch.block);
  copy(cluster.AllZero() ? Dimensions{1, 1, 1} : cluster, launch.cluster);
  launch.shared_bytes = config.shared_bytes;
  launch.cooperative = config.is_cooperative;
  return launch;
}

// One launch, from its arguments to its work.
class Launch {
 public:
  CUresult Find(CUfunction handle, CUstream stream) {
    handle_ = handle;
    stream_handle_ = stream;
    const CUresult code = FindReadyStream(stream, &stream_);
    return code != CUDA_SUCCESS ? code : FindInContextOf(stream_, &handle_, &function_);
  }

  // See launch_config.h. What a capture does not look at shows when its graph runs.
  CUresult Check(const CUlaunchConfig& from, void** each, void** extra) {
    CUresult code = ReadLaunchConfig(from, &config_);
    if (code == CUDA_SUCCESS) code = LoseUnless(CheckBlocks(function_, config_));
    if (code != CUDA_SUCCESS) return code;
    if (IsCaptured()) {
      attributes_.assign(from.attrs, from.attrs + from.numAttrs);
      code = CheckResources();
      return code != CUDA_SUCCESS ? code : TakeParameters(each, extra);
    }
    code = TakeParameters(each, extra);
    if (code == CUDA_SUCCESS) code = CheckResources();
    if (code == CUDA_SUCCESS) code = CheckRun(function_, config_);
    const bool updates_no_graph = code == CUDA_SUCCESS && config_.is_updatable;
    return updates_no_graph ? CUDA_ERROR_NOT_SUPPORTED : code;
  }

  // The same of a graph's node.
  CUresult FindForNode(const CUDA_KERNEL_NODE_PARAMS_v2& from) {
    handle_ = from.func;
    CUresult code = from.func != nullptr ? CUDA_SUCCESS : FindInContext(from.kern, from.ctx);
    if (code == CUDA_SUCCESS) code = FindFunction(handle_, &function_);
    return code == CUDA_SUCCESS && from.func != nullptr ? PlaceNode() : code;
  }
  // In the function's context; or in the green context that is current, which must be of it.
  CUresult PlaceNode() {
    const Incarnation current = IncarnationOf(Stack::Top());
    const bool is_green = current.context->is_green();
    if (is_green && !current.IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    stream_.incarnation = is_green ? current : function_.incarnation;
    return !is_green || OwnerOf(current).id == function_.incarnation.id ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_VALUE;
  }
  CUresult CheckForNode(const CUlaunchConfig& from, void** each, void** extra) {
    attributes_.assign(from.attrs, from.attrs + from.numAttrs);
    CUresult code = ReadLaunchConfig(from, &config_);
    if (code == CUDA_SUCCESS) code = CheckBlocks(function_, config_);
    if (code == CUDA_SUCCESS) code = CheckResources();
    LaunchParameters parameters(*function_.entry);
    if (code == CUDA_SUCCESS) code = parameters.Take(each, extra, /*captures=*/true);
    if (code == CUDA_SUCCESS) packed_ = parameters.Packed();
    return code;
  }

  // What a node of this launch does.
  Work ForNode() const {
    Work work = MakeWork();
    work.attributes = attributes_;
    work.describe = Description();
    work.with = [launch = *this](const CUlaunchAttribute& attribute, Work* changed) {
      Launch next = launch;
      next.attributes_.push_back(attribute);
      const auto& [grid, block] = std::tie(next.config_.grid, next.config_.block);
      const CUlaunchConfig from = {grid.x,
                                   grid.y,
                                   grid.z,
                                   block.x,
                                   block.y,
                                   block.z,
                                   next.config_.shared_bytes,
                                   nullptr,
                                   next.attributes_.data(),
                                   static_cast<unsigned>(next.attributes_.size())};
      CUresult code = ReadLaunchConfig(from, &next.config_);
      if (code == CUDA_SUCCESS) code = next.CheckResources();
      if (code == CUDA_SUCCESS) *changed = next.ForNode();
      return code;
    };
    return work;
  }

  CUresult Submit() const {
    CUresult code =
        cudasim::driver::Submit(stream_handle_, stream_, IsCaptured() ? ForNode() : MakeWork());
    for (const CUevent event : config_.events) {
      if (code == CUDA_SUCCESS && event != nullptr) code = EventRecord(event, stream_handle_);
    }
    return code;
  }

 private:
  bool IsCaptured() const { return Captures::StatusOf(stream_) != CU_STREAM_CAPTURE_STATUS_NONE; }

  CUresult FindInContext(CUkernel kernel, CUcontext context) {
    CUresult code = CUDA_SUCCESS;
    if (context == nullptr) {
      code = CurrentPlace(&stream_.incarnation);
    } else {
      stream_.incarnation = IncarnationOf(Context::FindOrPanic(context));
      if (!stream_.incarnation.IsAlive()) code = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (code != CUDA_SUCCESS) return code;
    return FunctionOfKernel(kernel, OwnerOf(stream_.incarnation), &handle_);
  }

  CUresult CheckResources() const {
    return LoseUnless(cudasim::driver::CheckResources(
        function_, config_, stream_.incarnation.context->partition().multiprocessors));
  }

  CUresult TakeParameters(void** each, void** extra) {
    LaunchParameters parameters(*function_.entry);
    const CUresult code = parameters.Take(each, extra, IsCaptured());
    if (code == CUDA_SUCCESS) packed_ = parameters.Packed();
    return code;
  }

  CUresult LoseUnless(CUresult code) const {
    if (code != CUDA_SUCCESS) Captures::Lose(stream_);
    return code;
  }

  // The arguments are there as long as the description.
  std::function<void(CUgraphNodeParams*)> Description() const {
    struct Arguments {
      std::vector<unsigned char> packed;
      std::vector<void*> pointers;
    };
    const auto arguments = std::make_shared<Arguments>(Arguments{packed_, {}});
    for (const PtxParameter& parameter : function_.entry->parameters) {
      arguments->pointers.push_back(arguments->packed.data() + parameter.offset);
    }
    const CUcontext context = stream_.incarnation.context->handle();
    return [=, handle = handle_, config = config_](CUgraphNodeParams* params) {
      const auto& [grid, block] = std::tie(config.grid, config.block);
      params->kernel = {handle,
                        grid.x,
                        grid.y,
                        grid.z,
                        block.x,
                        block.y,
                        block.z,
                        config.shared_bytes,
                        arguments->pointers.data(),
                        nullptr,
                        nullptr,
                        context};
    };
  }

  // The parameters are copied now, whenever the kernel runs.
  Work MakeWork() const {
    Work work;
    work.type = CU_GRAPH_NODE_TYPE_KERNEL;
    work.incarnation = stream_.incarnation;
    work.is_valid = [handle = handle_] { return IsLoaded(handle); };
    // Not modelled: a launch by a graph of a kernel that outside of the capture fails with these
    // settings.
    work.is_modelled = CheckRun(function_, config_) == CUDA_SUCCESS;
    // The launch succeeds whatever the kernel does: the next call that looks finds out.
    work.run = [kernel = KernelOf(function_.entry->name), function = function_, packed = packed_,
                launch = ToSimLaunch(function_, config_), handle = handle_](CUstream) {
      static_cast<void>(IsLoaded(handle));
      const RunningKernel running = {function.incarnation, function.module};
      const KernelScope scope(running);
      SetStickyError(Run(kernel, *function.entry, packed, launch));
    };
    return work;
  }

  CUfunction handle_ = nullptr;
  CUstream stream_handle_ = nullptr;
  Stream stream_;
  Function function_;
  LaunchConfig config_;
  std::vector<unsigned char> packed_;
  std::vector<CUlaunchAttribute> attributes_;  // of a node
};

}  // namespace

CUresult FindInContextOf(const Stream& stream, CUfunction* handle, Function* function) {
  const Incarnation incarnation = OwnerOf(stream.incarnation);
  if (*handle != nullptr && IsKernel(*handle)) {
    const CUresult code =
        FunctionOfKernel(reinterpret_cast<CUkernel>(*handle), incarnation, handle);
    if (code != CUDA_SUCCESS) return code;
  }
  const CUresult code = FindFunction(*handle, function);
  if (code != CUDA_SUCCESS) return code;
  return function->incarnation.id == incarnation.id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult MakeKernelWork(const CUDA_KERNEL_NODE_PARAMS_v2& from,
                        const std::vector<CUlaunchAttribute>& attributes, Work* work) {
  if (from.func != nullptr && Stack::Top() == nullptr) {
    Panic(
        "a node is made of a kernel's function, or gets its parameters, where no context is "
        "current; a real driver crashes here (measured on an H200, driver 580.159.04)");
  }
  std::vector<CUlaunchAttribute> given = attributes;
  const CUlaunchConfig config = {from.gridDimX,       from.gridDimY,
                                 from.gridDimZ,       from.blockDimX,
                                 from.blockDimY,      from.blockDimZ,
                                 from.sharedMemBytes, nullptr,
                                 given.data(),        static_cast<unsigned>(given.size())};
  Launch launch;
  CUresult code = launch.FindForNode(from);
  if (code == CUDA_SUCCESS) code = launch.CheckForNode(config, from.kernelParams, from.extra);
  if (code == CUDA_SUCCESS) *work = launch.ForNode();
  return code;
}

void RegisterKernel(const char* name, SimKernel kernel) {
  const std::lock_guard<std::mutex> lock(kernels_mutex);
  SimKernels()[name] = kernel;
}

void SkipUnknownKernels(bool skip) { skips_unknown.store(skip); }

std::map<std::string, std::uint64_t> SkippedLaunches() {
  const std::lock_guard<std::mutex> lock(skipped_mutex);
  return Skipped();
}

std::uint64_t SkippedLaunchesOf(const char* name) {
  std::uint64_t count = 0;
  for (const auto& [kernel, times] : SkippedLaunches()) {
    if (name == nullptr || kernel == name) count += times;
  }
  return count;
}

CUresult LaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                        void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Launch launch;
  CUresult code = launch.Find(function, config->hStream);
  if (code == CUDA_SUCCESS) code = launch.Check(*config, parameters, extra);
  return code != CUDA_SUCCESS ? code : launch.Submit();
}

CUresult LaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      CUstream stream, void** parameters, void** extra) {
  const CUlaunchConfig config = {grid_x,  grid_y,       grid_z, block_x, block_y,
                                 block_z, shared_bytes, stream, nullptr, 0};
  return LaunchKernelEx(&config, function, parameters, extra);
}

CUresult LaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_bytes, CUstream stream,
                                 void** parameters) {
  CUlaunchAttribute cooperative = {};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  const CUlaunchConfig config = {grid_x,  grid_y,       grid_z, block_x,      block_y,
                                 block_z, shared_bytes, stream, &cooperative, 1};
  return LaunchKernelEx(&config, function, parameters, nullptr);
}

}  // namespace cudasim::driver
