// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variables of modules and libraries.

#include <cstring>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(variable_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;
using cudasim_test::OnlySim;

namespace {

using Bytes = std::vector<unsigned char>;

// `increment` adds one to `counter`, to what `pointer` points at and to `managed`, and
// stores what it finds in `scale`.
constexpr char kVariables[] = R"(.version 8.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .global .align 8 .u64 wide = 1234605616436508552;
.visible .global .align 4 .s32 negative = -2;
.visible .global .align 4 .b8 floats[8] = {0, 0, 192, 63, 0, 0, 0, 192};
.visible .global .align 8 .f64 real = 0d3FE0000000000000;
.visible .global .align 1 .b8 zeros[100];
.visible .global .align 1 .b8 text[6] = {104, 101, 108, 108, 111};
.visible .global .align 8 .u64 pointer = generic(counter);
.visible .global .align 8 .u64 inside[2] = {generic(text)+2, 0};
.visible .global .attribute(.managed) .align 4 .u32 managed = 5;
.visible .const .align 1 .b8 bytes[5] = {1, 2, 3, 4, 250};
.visible .const .align 4 .f32 scale = 0f40200000;
.visible .shared .align 4 .b8 shared[16];
.visible .entry increment(.param .u64 to)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<8>;
  ld.global.u32 %r1, [counter];
  add.u32 %r2, %r1, 1;
  st.global.u32 [counter], %r2;
  ld.global.u64 %rd1, [pointer];
  ld.u32 %r3, [%rd1];
  add.u32 %r4, %r3, 1;
  st.u32 [%rd1], %r4;
  ld.global.u32 %r5, [managed];
  add.u32 %r6, %r5, 1;
  st.global.u32 [managed], %r6;
  ld.const.u32 %r7, [scale];
  ld.param.u64 %rd2, [to];
  st.u32 [%rd2], %r7;
  ret;
}
)";

template <typename T>
T* InKernel(const char* name) {
  void* address = nullptr;
  size_t size = 0;
  BOOST_TEST(Sim::FindVariable(name, &address, &size));
  BOOST_TEST(size == sizeof(T));
  return static_cast<T*>(address);
}

CUresult Increment(const SimLaunch& launch) {
  ++*InKernel<unsigned>("counter");
  ++**InKernel<unsigned*>("pointer");
  ++*InKernel<unsigned>("managed");
  void* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  std::memcpy(to, InKernel<float>("scale"), sizeof(float));
  return CUDA_SUCCESS;
}

struct Place {
  CUdeviceptr address = 0xdead;
  size_t size = 777;
};

// A current context with the module and the library.
struct Loaded {
  Loaded() {
    Sim::RegisterKernel("increment", Increment);
    SetStack({context.get()});
    OK(RAW(cuModuleLoadData)(&module, kVariables));
    OK(RAW(cuLibraryLoadData)(&library, kVariables, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  }
  ~Loaded() {
    SetStack({});
    if (library != nullptr) OK(RAW(cuLibraryUnload)(library));
  }

  Place InModule(const char* name) const {
    Place place;
    OK(RAW(cuModuleGetGlobal)(&place.address, &place.size, module, name));
    return place;
  }
  Place InLibrary(const char* name) const {
    Place place;
    OK(RAW(cuLibraryGetGlobal)(&place.address, &place.size, library, name));
    return place;
  }
  Place Managed() const {
    Place place;
    OK(RAW(cuLibraryGetManaged)(&place.address, &place.size, library, "managed"));
    return place;
  }

  OwnContext context;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUstream stream = nullptr;
};

template <typename T>
T Read(CUdeviceptr from) {
  T value = {};
  OK(RAW(cuMemcpyDtoH)(&value, from, sizeof(value)));
  return value;
}

template <typename T>
void Write(CUdeviceptr to, T value) {
  OK(RAW(cuMemcpyHtoD)(to, &value, sizeof(value)));
}

Bytes ReadAll(const Place& place) {
  Bytes bytes(place.size);
  OK(RAW(cuMemcpyDtoH)(bytes.data(), place.address, place.size));
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(variables_have_sizes_and_initial_values) {
  const Loaded loaded;
  for (const bool of_module : {true, false}) {
    const auto find = [&](const char* name) {
      return of_module ? loaded.InModule(name) : loaded.InLibrary(name);
    };
    BOOST_TEST(find("counter").size == 4u);
    BOOST_TEST(Read<unsigned>(find("counter").address) == 7u);
    BOOST_TEST(Read<std::uint64_t>(find("wide").address) == 0x1122334455667788u);
    BOOST_TEST(Read<int>(find("negative").address) == -2);
    BOOST_TEST(Read<float>(find("floats").address) == 1.5f);
    BOOST_TEST(Read<float>(find("floats").address + 4) == -2.0f);
    BOOST_TEST(Read<double>(find("real").address) == 0.5);
    BOOST_TEST(Read<float>(find("scale").address) == 2.5f);
    BOOST_TEST((ReadAll(find("zeros")) == Bytes(100)));
    BOOST_TEST((ReadAll(find("text")) == Bytes{'h', 'e', 'l', 'l', 'o', 0}));
    BOOST_TEST((ReadAll(find("bytes")) == Bytes{1, 2, 3, 4, 250}));
    BOOST_TEST(Read<unsigned>(find("managed").address) == 5u);
    BOOST_TEST(Read<CUdeviceptr>(find("pointer").address) == find("counter").address);
    BOOST_TEST(Read<CUdeviceptr>(find("inside").address) == find("text").address + 2);
  }
}

BOOST_AUTO_TEST_CASE(what_there_is_not) {
  const Loaded loaded;
  const auto in_module = [&](const char* name, Place* place) {
    return RAW(cuModuleGetGlobal)(&place->address, &place->size, loaded.module, name);
  };
  const auto in_library = [&](const char* name, Place* place) {
    return RAW(cuLibraryGetGlobal)(&place->address, &place->size, loaded.library, name);
  };
  const auto managed = [&](const char* name, Place* place) {
    return RAW(cuLibraryGetManaged)(&place->address, &place->size, loaded.library, name);
  };
  for (const char* name : {"nosuch", "shared"}) {
    Place place;
    IS(in_library(name, &place), NOT_FOUND);
    IS(managed(name, &place), NOT_FOUND);
    BOOST_TEST(place.address == 0xdeadu);
    BOOST_TEST(place.size == 777u);
    IS(in_module(name, &place), NOT_FOUND);
    BOOST_TEST(place.address == 0u);
    BOOST_TEST(place.size == 0u);
  }
  for (const char* name : {"increment", ""}) {
    Place place;
    IS(in_library(name, &place), INVALID_VALUE);
    IS(in_module(name, &place), INVALID_VALUE);
    BOOST_TEST(place.address == 0u);
  }
  Place place;
  IS(managed("counter", &place), NOT_FOUND);
  IS(managed("scale", &place), NOT_FOUND);
}

BOOST_AUTO_TEST_CASE(one_answer_is_enough) {
  const Loaded loaded;
  Place place;
  OK(RAW(cuModuleGetGlobal)(&place.address, nullptr, loaded.module, "counter"));
  OK(RAW(cuModuleGetGlobal)(nullptr, &place.size, loaded.module, "floats"));
  BOOST_TEST(place.size == 8u);
  OK(RAW(cuLibraryGetGlobal)(&place.address, nullptr, loaded.library, "counter"));
  OK(RAW(cuLibraryGetGlobal)(nullptr, &place.size, loaded.library, "counter"));
  OK(RAW(cuLibraryGetManaged)(&place.address, nullptr, loaded.library, "managed"));
  OK(RAW(cuLibraryGetManaged)(nullptr, &place.size, loaded.library, "managed"));
  for (const char* name : {"floats", "nosuch"}) {
    IS(RAW(cuModuleGetGlobal)(nullptr, nullptr, loaded.module, name), INVALID_VALUE);
  }
  IS(RAW(cuLibraryGetGlobal)(nullptr, nullptr, loaded.library, "counter"), INVALID_VALUE);
  IS(RAW(cuLibraryGetManaged)(nullptr, nullptr, loaded.library, "managed"), INVALID_VALUE);
  IS(RAW(cuModuleGetGlobal)(&place.address, &place.size, loaded.module, nullptr), INVALID_VALUE);
  IS(RAW(cuLibraryGetGlobal)(&place.address, &place.size, loaded.library, nullptr), INVALID_VALUE);
  IS(RAW(cuLibraryGetManaged)(&place.address, &place.size, loaded.library, nullptr), INVALID_VALUE);
  IS(RAW(cuModuleGetGlobal)(&place.address, &place.size, nullptr, "counter"), INVALID_HANDLE);
  IS(RAW(cuLibraryGetGlobal)(&place.address, &place.size, nullptr, "counter"), INVALID_HANDLE);
  IS(RAW(cuLibraryGetManaged)(&place.address, &place.size, nullptr, "managed"), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(kernels_and_copies_see_the_same) {
  const Loaded loaded;
  const CUdeviceptr counter = loaded.InModule("counter").address;
  const CUdeviceptr scale = loaded.InModule("scale").address;
  const CUdeviceptr managed = loaded.InModule("managed").address;
  Write(counter, 100u);
  Write(scale, 8.0f);  // a constant is one for kernels only
  *reinterpret_cast<volatile unsigned*>(managed) = 200;
  CUdeviceptr result = 0;
  CUfunction increment = nullptr;
  void* parameters[] = {&result};
  OK(RAW(cuMemAlloc)(&result, sizeof(float)));
  OK(RAW(cuModuleGetFunction)(&increment, loaded.module, "increment"));
  OK(RAW(cuLaunchKernel)(increment, 1, 1, 1, 1, 1, 1, 0, loaded.stream, parameters, nullptr));
  OK(RAW(cuStreamSynchronize)(loaded.stream));
  BOOST_TEST(Read<unsigned>(counter) == 102u);
  BOOST_TEST(Read<float>(result) == 8.0f);
  BOOST_TEST(*reinterpret_cast<volatile unsigned*>(managed) == 201u);
  BOOST_TEST(Read<unsigned>(loaded.InLibrary("counter").address) == 7u);  // another
}

BOOST_AUTO_TEST_CASE(a_variable_is_memory_of_its_own) {
  const Loaded loaded;
  for (const char* name : {"counter", "floats", "text"}) {
    const Place place = loaded.InModule(name);
    BOOST_CHECK(Attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, place.address) ==
                loaded.context.get());
    BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, place.address) ==
               place.address);
    BOOST_TEST(Attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, place.address) == place.size);
    BOOST_TEST(Attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, place.address) ==
               static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    Place range;
    OK(RAW(cuMemGetAddressRange)(&range.address, &range.size, place.address));
    BOOST_TEST(range.address == place.address);
    BOOST_TEST(range.size == place.size);
    IS(RAW(cuMemsetD8)(place.address, 0, place.size + 1), INVALID_VALUE);
    IS(RAW(cuMemFree)(place.address), INVALID_VALUE);
    IS(RAW(cuMemFreeAsync)(place.address, loaded.stream), INVALID_VALUE);
    OK(RAW(cuMemsetD8)(place.address, 0, place.size));
  }
}

BOOST_AUTO_TEST_CASE(constants_lie_in_one_bank) {
  const Loaded loaded;
  const Place bytes = loaded.InModule("bytes");
  const Place scale = loaded.InModule("scale");
  BOOST_TEST(scale.address == bytes.address + 8);
  BOOST_TEST(scale.size == 4u);
  for (const Place& place : {bytes, scale}) {
    BOOST_TEST(Attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, place.address) ==
               bytes.address);
    BOOST_TEST(Attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, place.address) == 12u);
  }
}

BOOST_AUTO_TEST_CASE(a_managed_variable_is_in_no_context) {
  const Loaded loaded;
  for (const Place& place : {loaded.InModule("managed"), loaded.Managed()}) {
    BOOST_CHECK(Attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, place.address) == nullptr);
    unsigned managed = 0;
    OK(GetAttribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, place.address, &managed));
    BOOST_TEST(managed == 1u);
    IS(RAW(cuMemFree)(place.address), INVALID_VALUE);
  }
}

BOOST_AUTO_TEST_CASE(a_module_needs_no_context_for_its_variables) {
  const Loaded loaded;
  const Loaded other;  // current
  const CUdeviceptr of_other = other.InModule("counter").address;
  BOOST_TEST(loaded.InModule("counter").address != of_other);
  SetStack({});
  BOOST_TEST(other.InModule("counter").address == of_other);
}

BOOST_AUTO_TEST_CASE(a_library_has_variables_in_each_context_and_managed_ones_once) {
  const Loaded loaded;
  const OwnContext other;
  const CUdeviceptr in_first = loaded.InLibrary("counter").address;
  const CUdeviceptr managed = loaded.Managed().address;
  BOOST_TEST(loaded.InLibrary("managed").address == managed);
  Write(in_first, 99u);
  SetStack({other.get()});
  BOOST_TEST(loaded.InLibrary("counter").address != in_first);
  BOOST_TEST(Read<unsigned>(loaded.InLibrary("counter").address) == 7u);
  BOOST_TEST(loaded.InLibrary("managed").address == managed);
  BOOST_TEST(loaded.Managed().address == managed);
  SetStack({});
  Place place;
  IS(RAW(cuLibraryGetGlobal)(&place.address, &place.size, loaded.library, "counter"),
     INVALID_CONTEXT);
  BOOST_TEST(loaded.Managed().address == managed);
}

BOOST_AUTO_TEST_CASE(the_variables_of_a_library_are_its_module_s) {
  const Loaded loaded;
  CUmodule module = nullptr;
  Place place;
  OK(RAW(cuLibraryGetModule)(&module, loaded.library));
  OK(RAW(cuModuleGetGlobal)(&place.address, &place.size, module, "counter"));
  BOOST_TEST(place.address == loaded.InLibrary("counter").address);
}

BOOST_AUTO_TEST_CASE(a_reset_takes_all_but_managed_variables) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  CUlibrary library = nullptr;
  OK(RAW(cuLibraryLoadData)(&library, kVariables, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUdeviceptr counter = 0;
  CUdeviceptr managed = 0;
  OK(RAW(cuLibraryGetGlobal)(&counter, nullptr, library, "counter"));
  OK(RAW(cuLibraryGetManaged)(&managed, nullptr, library, "managed"));
  Write(counter, 42u);
  *reinterpret_cast<volatile unsigned*>(managed) = 77;
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  CUdeviceptr again = 0;
  IS(RAW(cuLibraryGetGlobal)(&again, nullptr, library, "counter"), CONTEXT_IS_DESTROYED);
  OK(RAW(cuLibraryGetManaged)(&again, nullptr, library, "managed"));
  BOOST_TEST(again == managed);
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(RAW(cuLibraryGetGlobal)(&counter, nullptr, library, "counter"));
  BOOST_TEST(Read<unsigned>(counter) == 7u);
  BOOST_TEST(*reinterpret_cast<volatile unsigned*>(managed) == 77u);
  OK(RAW(cuLibraryUnload)(library));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  RAW(cuDevicePrimaryCtxRelease)(0);  // the retain that the reset may have taken
}

BOOST_AUTO_TEST_CASE(unloading_takes_variables_along) {
  const Loaded loaded;
  const CUdeviceptr counter = loaded.InModule("counter").address;
  const CUdeviceptr scale = loaded.InModule("scale").address;
  OK(RAW(cuModuleUnload)(loaded.module));
  BOOST_TEST(!IsKnown(counter));
  BOOST_TEST(!IsKnown(scale));
  unsigned value = 0;
  IS(RAW(cuMemcpyDtoH)(&value, counter, sizeof(value)), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_module_of_a_destroyed_context_has_none) {
  Loaded loaded;
  OK(RAW(cuCtxDestroy)(loaded.context.release()));
  Place place;
  const CUresult code =
      RAW(cuModuleGetGlobal)(&place.address, &place.size, loaded.module, "counter");
  // Either code on a real driver, from one process to the next, as of other calls.
  BOOST_TEST((code == CUDA_ERROR_INVALID_HANDLE || code == CUDA_ERROR_CONTEXT_IS_DESTROYED));
}

BOOST_AUTO_TEST_CASE(a_bad_image_has_none) {
  static const char kGarbage[64] = "this is not a module";
  const OwnContext context;
  SetStack({context.get()});
  CUlibrary library = nullptr;
  Place place;
  OK(RAW(cuLibraryLoadData)(&library, kGarbage, nullptr, nullptr, 0, nullptr, nullptr, 0));
  IS(RAW(cuLibraryGetGlobal)(&place.address, &place.size, library, "x"), INVALID_IMAGE);
  IS(RAW(cuLibraryGetManaged)(&place.address, &place.size, library, "x"), INVALID_IMAGE);
  OK(RAW(cuLibraryUnload)(library));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_device_has_no_room_for_every_variable, *OnlySim()) {
  const OwnContext context;
  SetStack({context.get()});
  const auto before = Sim::Live();
  CUmodule module = nullptr;
  IS(RAW(cuModuleLoadData)(&module,
                           ".version 8.0\n.target sm_50\n.address_size 64\n"
                           ".visible .global .b8 small[16];\n"
                           ".visible .global .b8 large[400000000000];\n"),
     OUT_OF_MEMORY);
  BOOST_CHECK(Sim::Live() == before);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(asking_invalidates_no_capture) {
  const Loaded loaded;
  OK(Begin(loaded.stream, kGlobal));
  loaded.InModule("counter");
  loaded.InLibrary("counter");  // the library becomes a module here
  loaded.Managed();
  BOOST_TEST(StatusOf(loaded.stream) == kActive);
  End(loaded.stream);
}

BOOST_AUTO_TEST_CASE(variables_are_no_allocations_of_the_program, *OnlySim()) {
  const auto before = Sim::Live();
  {
    const Loaded loaded;
    loaded.InLibrary("counter");
    BOOST_TEST(Sim::Live().allocations == before.allocations);
  }
  BOOST_CHECK(Sim::Live() == before);
}

BOOST_AUTO_TEST_CASE(only_a_kernel_finds_variables_by_name, *OnlySim()) {
  const Loaded loaded;
  void* address = nullptr;
  BOOST_TEST(!Sim::FindVariable("counter", &address));
  Sim::RegisterKernel("increment", [](const SimLaunch&) {
    void* found = nullptr;
    BOOST_TEST(!Sim::FindVariable("nosuch", &found));
    BOOST_TEST(Sim::FindVariable("counter", &found));
    BOOST_TEST(found != nullptr);
    return CUDA_SUCCESS;
  });
  CUdeviceptr to = 0;
  void* parameters[] = {&to};
  CUfunction increment = nullptr;
  OK(RAW(cuModuleGetFunction)(&increment, loaded.module, "increment"));
  OK(RAW(cuLaunchKernel)(increment, 1, 1, 1, 1, 1, 1, 0, loaded.stream, parameters, nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
