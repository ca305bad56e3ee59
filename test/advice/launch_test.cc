// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What texts of launches advise is done, and what the compiler advises compiles. Its messages are
// tested by test/headers/snippets_test.py.

#include <vector_types.h>

#include <limits>

#include "cuguest/objects/peer_access.h"
#include "cuguest/objects/typed_kernel.h"
#include "test/objects/launch/launches.h"
#include "test/support/advised.h"

namespace {

// float4's members, as a host has it that knows no CUDA.
struct FourFloats {
  float x, y, z, w;
};
struct GuidesStruct {
  float f;
  FourFloats f4;
};
struct GuidesAlignedStruct {
  float f;
  alignas(16) FourFloats f4;
};
struct FourFloatsOnTheDevice {
  float x, y, z, w;
};

}  // namespace

template <>
struct cuguest::ParamTraits<FourFloatsOnTheDevice> {
  static constexpr std::size_t kAlignment = 16;
};

BOOST_AUTO_TEST_SUITE(launch)

namespace {

using namespace cuguest_launches;
using cuguest::PeerAccess;

}  // namespace

BOOST_AUTO_TEST_CASE(value_of_the_parameters_type,
                     *NeedsDriver(12040, "cuFuncGetParamInfo, by which parameters are checked")) {
  Counter counter;
  const auto launched = [&](auto value) {
    return Launch(counter.kernel(), counter.shape(), counter.stream(), kCount, value,
                  counter.memory());
  };
  REFUSES(launched(3.0), kInvalidArgument,
          Advised("pass a value of the type that it has there (an int or a float, as 1.0F, has 4 "
                  "bytes"));
  SUCCEEDS(launched(kValue));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(struct_with_the_devices_layout,
                     *NeedsDriver(12040, "cuFuncGetParamInfo, by which parameters are checked")) {
  Bench<unsigned char> bench(4096);
  const Module module = LoadLayoutKernels(bench.ref());
  const auto launched = [&](const char* name, const auto& value) {
    const absl::Status status = Launch(module.GetKernel(name).value(), {}, bench.stream(),
                                       Packed('b', value, 'a', bench.memory()));
    SUCCEEDS(bench.stream().Synchronize());
    return status;
  };
  const char* const advice = Advised(
      "declare its members as there (a float4 with alignas(16)), or say its alignment by "
      "ParamTraits");
  REFUSES(launched("layout_struct", GuidesStruct()), kInvalidArgument, advice);
  SUCCEEDS(launched("layout_struct", GuidesAlignedStruct()));
  REFUSES(launched("layout_float4", FourFloats()), kInvalidArgument, advice);
  SUCCEEDS(launched("layout_float4", FourFloatsOnTheDevice()));
}

// bitsandbytes-foundation/bitsandbytes#1952, NVIDIA/cuopt#1095.
BOOST_AUTO_TEST_CASE(shared_memory_allowed_in_each_context) {
  Counter first;
  Counter second;
  const Kernel kernel = first.Get("get_shape");
  LaunchShape shape{1, 1};
  shape.shared_bytes = 64 << 10;
  const auto in_second = [&] { return Launch(kernel, shape, second.stream(), second.memory()); };
  SUCCEEDS(kernel.SetMaxDynamicSharedBytes(first.ref(), shape.shared_bytes));
  SUCCEEDS(Launch(kernel, shape, first.stream(), first.memory()));
  REFUSES(in_second(), kInvalidArgument, "49152 are allowed in this context",
          Advised("allow it by Kernel::SetMaxDynamicSharedBytes in each context that launches it, "
                  "and again after a reset"));
  SUCCEEDS(kernel.SetMaxDynamicSharedBytes(second.ref(), shape.shared_bytes));
  SUCCEEDS(in_second());
  SUCCEEDS(first.stream().Synchronize());
  SUCCEEDS(second.stream().Synchronize());
}

BOOST_AUTO_TEST_CASE(shared_memory_allowed_after_a_reset) {
  RegisterKernels();
  const auto image =
      CodeImage::Borrow({cuguest_kernels::launch_fatbin, cuguest_kernels::launch_fatbin_size},
                        "launch.fatbin")
          .value();
  LaunchShape shape{1, 1};
  shape.shared_bytes = 64 << 10;
  for (int incarnation = 0; incarnation < 2; ++incarnation) {
    cuguest::PrimaryContext primary = cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0));
    const ContextRef context = primary.context();
    const Kernel kernel = Module::LoadIn(context, image)->GetKernel("nothing").value();
    const cuguest::Stream stream = cuguest::Stream::Create(context).value();
    REFUSES(Launch(kernel, shape, stream.ref()), kInvalidArgument, "again after a reset");
    SUCCEEDS(kernel.SetMaxDynamicSharedBytes(context, shape.shared_bytes));
    SUCCEEDS(Launch(kernel, shape, stream.ref()));
    SUCCEEDS(stream.ref().Synchronize());
  }  // the last reference: what is retained next is another incarnation
}

BOOST_AUTO_TEST_CASE(
    larger_cluster_is_allowed,
    *NeedsDriver(11080, "clusters (cuLaunchKernelEx, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)")) {
  Counter counter;
  LaunchShape shape{16, 32};
  shape.cluster = LaunchShape::Dim3{16};
  REFUSES(counter.CountUp(shape, counter.stream()), kInvalidArgument,
          Advised("allow it by cuFuncSetAttribute, "
                  "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED"));
  OK(RAW(cuFuncSetAttribute)(counter.kernel().FunctionIn(counter.ref()).value(),
                             CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  SUCCEEDS(counter.CountUp(shape, counter.stream()));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(memory_of_another_device, *cudasim_test::NeedsDevices(2)) {
  Counter counter;
  const Owner other(1);
  auto far = DeviceBuffer<unsigned>::Allocate(other.ref(), kCount).value();
  SUCCEEDS(Zero(far.view()));
  REFUSES(Launch(counter.kernel(), counter.shape(), counter.stream(), kCount, kValue, far),
          kInvalidArgument,
          Advised("copy it there first; or pass a DevicePtr of it, if the stream's context was "
                  "given access with "),
          "PeerAccess::Enable");
  SUCCEEDS(Copy(counter.buffer().view(), far.view()));
  SUCCEEDS(counter.CountUp());
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(another_devices_memory_with_access, *NeedsPeers()) {
  Counter counter;
  const Owner other(1);
  auto far = DeviceBuffer<unsigned>::Allocate(other.ref(), kCount).value();
  const auto access = PeerAccess::Enable(counter.ref(), other.ref());
  SUCCEEDS(access.status());
  SUCCEEDS(Launch(counter.kernel(), counter.shape(), counter.stream(), kCount, kValue,
                  DevicePtr<unsigned>(far.view())));
  SUCCEEDS(counter.stream().Synchronize());
}

BOOST_AUTO_TEST_CASE(more_parameters_than_a_launch_takes) {
  ParamBuffer params;
  const std::vector<unsigned char> all(40000);
  const absl::Status status = params.AddBytes(all.data(), all.size(), 1);
  REFUSES(status, kOutOfRange, Advised("bytes; pass a pointer to the rest"));
  Counter counter;
  SUCCEEDS(params.Add(kCount));
  SUCCEEDS(params.Add(kValue));
  SUCCEEDS(params.Add(counter.memory()));  // the counters, which are as many as one likes
  SUCCEEDS(Launch(counter.kernel(), counter.shape(), counter.stream(), params));
  BOOST_TEST(counter.Took());
}

BOOST_AUTO_TEST_CASE(more_elements_than_threads) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  REFUSES(LaunchShape::ForElements(kMost, 1024).status(), kOutOfRange,
          Advised("let each thread do more than one"));
  const std::size_t each = kMost / 0x7fffffff / 1024 + 1;
  SUCCEEDS(LaunchShape::ForElements(kMost / each, 1024).status());
}

BOOST_AUTO_TEST_CASE(ptx_of_a_later_toolkit) {
  const Owner owner;
  constexpr char kLater[] = ".version 99.0\n.target sm_50\n.address_size 64\n";
  constexpr char kOlder[] =
      ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n";
  REFUSES(Module::LoadIn(owner.ref(), kLater, "later.ptx").status(), kUnimplemented,
          Advised("compile with an older toolkit, or give machine code"));
  SUCCEEDS(Module::LoadIn(owner.ref(), kOlder, "older.ptx").status());
  SUCCEEDS(LoadLaunchKernels(owner.ref()).GetKernel("nothing").status());
}

// Each as the compiler's message has it.
BOOST_AUTO_TEST_CASE(arguments_that_compile) {
  Counter counter;
  const auto launched = [&](const auto&... arguments) {
    SUCCEEDS(Launch(counter.kernel(), counter.shape(), counter.stream(), arguments...));
    BOOST_TEST(counter.Took());
  };
  const auto typed =
      cuguest::TypedKernel<void(unsigned, unsigned, DevicePtr<unsigned>)>::Of(counter.kernel());
  const auto launched_typed = [&](const auto& memory) {
    SUCCEEDS(typed.Launch(counter.shape(), counter.stream(), kCount, kValue, memory));
    BOOST_TEST(counter.Took());
  };
  unsigned* const pointer = counter.buffer().view().data();
  static_cast<void>(
      Advised("pass DevicePtr<T>(pointer) if it is one for the device, or launch a "
              "TypedKernel, whose types say that it takes pointers"));
  launched(kCount, kValue, DevicePtr<unsigned>(pointer));
  launched_typed(DevicePtr<unsigned>(pointer));
  static_cast<void>(
      Advised("for a pointer to each parameter pass a HostSpan<void* const> of it to "
              "Launch(); for pointers of the device make it one of DevicePtr<T>, or "
              "launch a TypedKernel"));
  unsigned count = kCount;
  unsigned value = kValue;
  unsigned* memory = pointer;
  const std::vector<void*> each = {&count, &value, &memory};
  launched(HostSpan<void* const>(each));
  static_cast<void>(
      Advised("pass a DevicePtr<T> and the number of elements, or launch a "
              "TypedKernel, whose types say that it takes views"));
  launched(kCount, kValue, DevicePtr<unsigned>(counter.buffer().view()));
  launched_typed(counter.buffer().view());
  static_cast<void>(Advised("pass a DeviceView or a DeviceBuffer, or a DevicePtr<T>"));
  launched(kCount, kValue, counter.buffer().view());
  launched(kCount, kValue, counter.buffer());
  static_cast<void>(Advised("pass DevicePtr<T>(view), of a DeviceBuffer its view()"));
  ParamBuffer params;
  SUCCEEDS(params.Add(kCount));
  SUCCEEDS(params.Add(kValue));
  SUCCEEDS(params.Add(DevicePtr<unsigned>(counter.buffer().view())));
  launched(params);
  static_cast<void>(Advised("put it into a struct, or pass a DevicePtr to its copy on the device"));
  struct Values {
    unsigned of[1] = {kValue};
  };
  launched(kCount, Values(), counter.memory());
  launched(kCount, kValue, DevicePtr<unsigned>(counter.buffer().view()));
  static_cast<void>(Advised("pass a DevicePtr<T>(), nullptr has no type"));
  SUCCEEDS(Launch(counter.kernel(), counter.shape(), counter.stream(), 0U, kValue,
                  DevicePtr<unsigned>()));
  SUCCEEDS(counter.stream().Synchronize());
}

BOOST_AUTO_TEST_SUITE_END()
