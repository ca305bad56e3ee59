// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of launch.h share: the kernels of launch.cu and layout.cu, their host
// functions on the simulation, and memory that they write to.

#ifndef CUGUEST_TEST_OBJECTS_LAUNCH_LAUNCHES_H_
#define CUGUEST_TEST_OBJECTS_LAUNCH_LAUNCHES_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "kernels/launch.h"
#include "kernels/layout.h"
#include "kernels/layout_types.h"
#include "test/objects/launch/params.h"
#include "test/objects/memory/memories.h"

namespace cuguest_launches {

using namespace cuguest_test;
using cudasim::Sim;
using cudasim::SimLaunch;
using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::HostSpan;
using cuguest::Kernel;
using cuguest::Launch;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::ParamBuffer;
using cuguest::StreamRef;
using Bytes = std::vector<unsigned char>;

template <typename T>
T Parameter(const SimLaunch& launch, std::size_t index) {
  T value;
  std::memcpy(&value, launch.parameters[index], sizeof(T));
  return value;
}

// counts[i] += value. Atomically: the simulation does not put launches from several threads
// in the order of their stream.
inline CUresult CountUp(const SimLaunch& launch) {
  const unsigned threads = launch.grid[0] * launch.block[0];
  const unsigned count = std::min(threads, Parameter<unsigned>(launch, 0));
  auto* const counts = Parameter<unsigned*>(launch, 2);
  if (count != 0 && !Sim::KernelReaches(counts, count * sizeof(unsigned))) {
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  for (unsigned i = 0; i < count; ++i) {
    __atomic_fetch_add(counts + i, Parameter<unsigned>(launch, 1), __ATOMIC_RELAXED);
  }
  return CUDA_SUCCESS;
}

inline CUresult GetShape(const SimLaunch& launch) {
  auto* const shape = Parameter<unsigned*>(launch, 0);
  std::copy(launch.grid, launch.grid + 3, shape);
  std::copy(launch.block, launch.block + 3, shape + 3);
  std::copy(launch.cluster, launch.cluster + 3, shape + 6);
  shape[9] = launch.shared_bytes;
  return CUDA_SUCCESS;
}

// The variable of launch.cu, in the context that the kernel runs in.
inline unsigned* LaunchMark() {
  void* mark = nullptr;
  return Sim::FindVariable("launch_mark", &mark) ? static_cast<unsigned*>(mark) : nullptr;
}
inline CUresult SetMark(const SimLaunch& launch) {
  *LaunchMark() = Parameter<unsigned>(launch, 0);
  return CUDA_SUCCESS;
}
inline CUresult GetMark(const SimLaunch& launch) {
  *Parameter<unsigned*>(launch, 0) = *LaunchMark();
  return CUDA_SUCCESS;
}

inline CUresult LastThread(const SimLaunch& launch) {
  *Parameter<unsigned*>(launch, 0) = launch.block[0] - 1;
  return CUDA_SUCCESS;
}

// Every layout kernel: the bytes of all parameters, to where the last one points.
inline CUresult WriteAll(const SimLaunch& launch) {
  auto* to = Parameter<unsigned char*>(launch, launch.parameter_count - 1);
  for (std::size_t i = 0; i + 1 < launch.parameter_count; ++i) {
    std::memcpy(to, launch.parameters[i], launch.parameter_sizes[i]);
    to += launch.parameter_sizes[i];
  }
  return CUDA_SUCCESS;
}

inline void RegisterKernels() {
  Sim::RegisterKernel("nothing", [](const SimLaunch&) { return CUDA_SUCCESS; });
  Sim::RegisterKernel("count_up", &CountUp);
  Sim::RegisterKernel("get_shape", &GetShape);
  Sim::RegisterKernel("get_mark", &GetMark);
  Sim::RegisterKernel("set_mark", &SetMark);
  Sim::RegisterKernel("small_blocks", &LastThread);
#define CUGUEST_REGISTER(Type, ...) Sim::RegisterKernel("layout_" #Type, &WriteAll);
  CUGUEST_VECTOR_TYPES(CUGUEST_REGISTER)
  CUGUEST_VECTOR_TYPES_WITH_ALIGNMENT(CUGUEST_REGISTER)
#undef CUGUEST_REGISTER
  for (const char* name : {"layout_mixed", "layout_struct", "layout_padded", "layout_aligned",
                           "layout_basic", "layout_large"}) {
    Sim::RegisterKernel(name, &WriteAll);
  }
}

inline Module Load(const ContextRef& context, HostSpan<const unsigned char> fatbin,
                   const char* name) {
  RegisterKernels();
  return Module::LoadIn(context, CodeImage::Borrow(fatbin, name).value()).value();
}
inline Module LoadLaunchKernels(const ContextRef& context) {
  return Load(context, {cuguest_kernels::launch_fatbin, cuguest_kernels::launch_fatbin_size},
              "launch.fatbin");
}
inline Module LoadLayoutKernels(const ContextRef& context) {
  return Load(context, {cuguest_kernels::layout_fatbin, cuguest_kernels::layout_fatbin_size},
              "layout.fatbin");
}

// A context with a stream that has nothing to wait for, nothing of it current, and memory.
template <typename T>
class Bench {
 public:
  explicit Bench(std::size_t count) : memory_(Allocate(count)) { Clear(); }

  const Owner& owner() const { return owner_; }
  const ContextRef& ref() const { return ref_; }
  const StreamRef& stream() const { return stream_; }
  DevicePtr<T> memory() { return memory_.view(); }
  DeviceBuffer<T>& buffer() { return memory_; }

  void Clear() { SUCCEEDS(Zero(memory_.view())); }
  // What the launches so far have left there; it is cleared.
  std::vector<T> Take() {
    SUCCEEDS(stream_.Synchronize());
    std::vector<T> values(memory_.size());
    SUCCEEDS(Download(memory_.view(), values));
    Clear();
    return values;
  }

 private:
  DeviceBuffer<T> Allocate(std::size_t count) {
    return DeviceBuffer<T>::Allocate(ref_, count).value();
  }

  Owner owner_;
  ContextRef ref_ = owner_.ref();
  StreamRef stream_ = StreamRef::Borrow(owner_.stream(), ref_);
  DeviceBuffer<T> memory_;
};

using Counts = std::vector<unsigned>;

inline constexpr unsigned kCount = 100;
inline constexpr unsigned kValue = 3;

// kCount counters, and what counts them up.
class Counter : public Bench<unsigned> {
 public:
  Counter() : Bench(kCount) {}
  Kernel Get(const char* name) const { return module_.GetKernel(name).value(); }
  const Module& module() const { return module_; }
  const Kernel& kernel() const { return kernel_; }
  static LaunchShape shape() { return LaunchShape::ForElements(kCount, 32).value(); }

  absl::Status CountUp(const LaunchShape& shape, const StreamRef& stream) {
    return Launch(kernel_, shape, stream, kCount, kValue, memory());
  }
  absl::Status CountUp() { return CountUp(shape(), stream()); }
  bool Took(unsigned times = 1) { return Take() == Counts(kCount, times * kValue); }

 private:
  Module module_ = LoadLaunchKernels(ref());
  Kernel kernel_ = Get("count_up");
};

}  // namespace cuguest_launches

#endif  // CUGUEST_TEST_OBJECTS_LAUNCH_LAUNCHES_H_
