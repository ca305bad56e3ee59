// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries and kernels, which belong to no context, and the modules that they become in
// each. Measured on an NVIDIA H200, driver 580.159.04.

#include <csignal>
#include <cstring>
#include <set>
#include <string>

#include "cudasim/sim.h"
#include "test/capture.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(library_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;
using cudasim_test::OnlySim;

namespace {

constexpr auto kNoFunction = CU_FUNC_ATTRIBUTE_MAX;

CUresult Load(CUlibrary* library, const void* image = kPtx) {
  return RAW(cuLibraryLoadData)(library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

CUresult Store(const SimLaunch& launch) {
  unsigned* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  std::memcpy(to, launch.parameters[1], sizeof(unsigned));
  return CUDA_SUCCESS;
}

// The library of facts.h; nothing is current.
struct Loaded {
  Loaded() {
    Sim::RegisterKernel("nothing", [](const SimLaunch&) { return CUDA_SUCCESS; });
    Sim::RegisterKernel("store", Store);
    OK(Load(&library));
    OK(RAW(cuLibraryGetKernel)(&nothing, library, "nothing"));
    OK(RAW(cuLibraryGetKernel)(&store, library, "store"));
  }
  ~Loaded() {
    if (library != nullptr) OK(RAW(cuLibraryUnload)(library));
  }
  void Unload() {
    OK(RAW(cuLibraryUnload)(library));
    library = nullptr;
  }
  CUfunction Function() const {
    CUfunction function = nullptr;
    OK(RAW(cuKernelGetFunction)(&function, nothing));
    return function;
  }
  CUmodule Module() const {
    CUmodule module = nullptr;
    OK(RAW(cuLibraryGetModule)(&module, library));
    return module;
  }

  CUlibrary library = nullptr;
  CUkernel nothing = nullptr;
  CUkernel store = nullptr;
};

CUresult Launch(CUfunction function, CUstream stream) {
  return RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}
CUresult Launch(CUkernel kernel, CUstream stream) {
  return Launch(reinterpret_cast<CUfunction>(kernel), stream);
}

CUstream NewStream() {
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

void CheckIsGone(CUfunction function) {
  const char* name = nullptr;
  CUmodule module = nullptr;
  CUfunctionLoadingState state;
  size_t offset = 0;
  int value = 0;
  IS(RAW(cuFuncGetName)(&name, function), INVALID_HANDLE);
  IS(RAW(cuFuncGetModule)(&module, function), INVALID_HANDLE);
  IS(RAW(cuFuncLoad)(function), INVALID_HANDLE);
  IS(RAW(cuFuncIsLoaded)(&state, function), INVALID_HANDLE);
  IS(RAW(cuFuncGetParamInfo)(function, 0, &offset, nullptr), INVALID_HANDLE);
  IS(RAW(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function), INVALID_HANDLE);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_library_needs_no_context_and_makes_none) {
  const Loaded loaded;
  int value = 0;
  OK(RAW(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, loaded.nothing, 0));
  BOOST_TEST(value >= 1);
  BOOST_CHECK(CurrentContext() == nullptr);
  BOOST_TEST(!IsActive(0));
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  size_t offset = 0;
  IS(RAW(cuKernelGetFunction)(&function, loaded.nothing), INVALID_CONTEXT);
  IS(RAW(cuLibraryGetModule)(&module, loaded.library), INVALID_CONTEXT);
  IS(RAW(cuKernelGetParamInfo)(loaded.store, 0, &offset, nullptr), INVALID_CONTEXT);
  IS(Launch(loaded.nothing, nullptr), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(an_image_is_looked_at_when_it_is_used) {
  const OwnContext context;
  const auto check = [&](const char* image, CUresult code) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUmodule module = nullptr;
    unsigned count = 77;
    OK(Load(&library, image));
    BOOST_CHECK_EQUAL(RAW(cuLibraryGetKernel)(&kernel, library, "k"), code);
    OK(RAW(cuLibraryGetKernelCount)(&count, library));
    BOOST_TEST(count == 0u);
    OK(RAW(cuLibraryEnumerateKernels)(&kernel, 1, library));
    BOOST_CHECK(kernel == nullptr);
    SetStack({context.get()});
    BOOST_CHECK_EQUAL(RAW(cuLibraryGetModule)(&module, library), code);
    SetStack({});
    OK(RAW(cuLibraryUnload)(library));
  };
  static const char kGarbage[64] = "this is not a module";
  check(kGarbage, CUDA_ERROR_INVALID_IMAGE);
  check("", CUDA_ERROR_INVALID_IMAGE);
  check(".version 99.0\n.target sm_90\n.address_size 64\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  check(".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k( { nonsense; }\n",
        CUDA_ERROR_INVALID_PTX);
}

BOOST_AUTO_TEST_CASE(an_image_is_copied) {
  const OwnContext context;
  std::string image = kPtx;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  OK(Load(&library, image.c_str()));
  image.assign(image.size(), 'x');
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "nothing"));
  SetStack({context.get()});
  OK(RAW(cuKernelGetFunction)(&function, kernel));
  SetStack({});
  OK(RAW(cuLibraryUnload)(library));
}

BOOST_AUTO_TEST_CASE(arguments_of_loading) {
  CUlibrary library = nullptr;
  IS(Load(nullptr), INVALID_VALUE);
  IS(Load(&library, nullptr), INVALID_VALUE);
  IS(RAW(cuLibraryLoadData)(&library, kPtx, nullptr, nullptr, 1, nullptr, nullptr, 0),
     INVALID_VALUE);
  CUjit_option level = CU_JIT_OPTIMIZATION_LEVEL;
  void* value = reinterpret_cast<void*>(1);
  CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED, OutOfRange<CUlibraryOption>(99)};
  void* values[] = {value, value};
  IS(RAW(cuLibraryLoadData)(&library, kPtx, nullptr, nullptr, 0, options + 1, values, 1),
     INVALID_VALUE);
  OK(RAW(cuLibraryLoadData)(&library, kPtx, &level, &value, 1, options, values, 1));
  OK(RAW(cuLibraryUnload)(library));
  IS(RAW(cuLibraryUnload)(nullptr), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(kernels_are_found_by_name) {
  const Loaded loaded;
  auto kernel = reinterpret_cast<CUkernel>(0x77);
  IS(RAW(cuLibraryGetKernel)(&kernel, loaded.library, "nosuch"), NOT_FOUND);
  BOOST_CHECK(kernel == reinterpret_cast<CUkernel>(0x77));  // not so a function of a module
  IS(RAW(cuLibraryGetKernel)(&kernel, loaded.library, ""), NOT_FOUND);
  IS(RAW(cuLibraryGetKernel)(&kernel, loaded.library, nullptr), INVALID_VALUE);
  IS(RAW(cuLibraryGetKernel)(nullptr, loaded.library, "store"), INVALID_VALUE);
  IS(RAW(cuLibraryGetKernel)(&kernel, nullptr, "store"), INVALID_HANDLE);
  OK(RAW(cuLibraryGetKernel)(&kernel, loaded.library, "store"));
  BOOST_CHECK(kernel == loaded.store);
  const char* name = nullptr;
  OK(RAW(cuKernelGetName)(&name, kernel));
  BOOST_TEST(name == std::string("store"));
  IS(RAW(cuKernelGetName)(nullptr, kernel), INVALID_VALUE);
  IS(RAW(cuKernelGetName)(&name, nullptr), INVALID_VALUE);
  CUlibrary library = nullptr;
  OK(RAW(cuKernelGetLibrary)(&library, kernel));
  BOOST_CHECK(library == loaded.library);
  IS(RAW(cuKernelGetLibrary)(nullptr, kernel), INVALID_VALUE);
  IS(RAW(cuKernelGetLibrary)(&library, nullptr), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(kernels_are_counted_and_listed) {
  const Loaded loaded;
  unsigned count = 0;
  OK(RAW(cuLibraryGetKernelCount)(&count, loaded.library));
  BOOST_TEST(count == 2u);
  CUkernel kernels[3] = {};
  OK(RAW(cuLibraryEnumerateKernels)(kernels, 1, loaded.library));
  BOOST_CHECK(kernels[0] != nullptr && kernels[1] == nullptr);
  OK(RAW(cuLibraryEnumerateKernels)(kernels, 3, loaded.library));
  BOOST_CHECK(kernels[2] == nullptr);
  const std::set<CUkernel> all(kernels, kernels + 2);
  BOOST_CHECK(all == (std::set<CUkernel>{loaded.nothing, loaded.store}));
  OK(RAW(cuLibraryEnumerateKernels)(kernels, 0, loaded.library));
  IS(RAW(cuLibraryEnumerateKernels)(nullptr, 0, loaded.library), INVALID_VALUE);
  IS(RAW(cuLibraryEnumerateKernels)(kernels, 1, nullptr), INVALID_HANDLE);
  IS(RAW(cuLibraryGetKernelCount)(nullptr, loaded.library), INVALID_VALUE);
  IS(RAW(cuLibraryGetKernelCount)(&count, nullptr), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(attributes_of_a_kernel) {
  const Loaded loaded;
  int value = 0;
  IS(RAW(cuKernelGetAttribute)(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, loaded.store, 0),
     INVALID_VALUE);
  IS(RAW(cuKernelGetAttribute)(&value, kNoFunction, loaded.store, 0), INVALID_VALUE);
  IS(RAW(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr, 0), INVALID_HANDLE);
  IS(RAW(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, loaded.store, 99),
     INVALID_DEVICE);
}

BOOST_AUTO_TEST_CASE(parameters_are_described) {
  const Loaded loaded;
  const OwnContext context;
  SetStack({context.get()});
  CUfunction store = nullptr;
  OK(RAW(cuKernelGetFunction)(&store, loaded.store));
  size_t offset = 0;
  size_t size = 0;
  OK(RAW(cuKernelGetParamInfo)(loaded.store, 1, &offset, &size));
  BOOST_TEST(offset == 8u);
  BOOST_TEST(size == 4u);
  OK(RAW(cuFuncGetParamInfo)(store, 0, &offset, &size));
  BOOST_TEST(offset == 0u);
  BOOST_TEST(size == 8u);
  OK(RAW(cuFuncGetParamInfo)(store, 1, &offset, nullptr));
  BOOST_TEST(offset == 8u);
  OK(RAW(cuKernelGetParamInfo)(loaded.store, 0, &offset, nullptr));
  IS(RAW(cuFuncGetParamInfo)(store, 2, &offset, &size), INVALID_VALUE);
  IS(RAW(cuKernelGetParamInfo)(loaded.nothing, 0, &offset, &size), INVALID_VALUE);
  IS(RAW(cuFuncGetParamInfo)(store, 1, nullptr, &size), INVALID_VALUE);
  IS(RAW(cuKernelGetParamInfo)(loaded.store, 1, nullptr, &size), INVALID_VALUE);
  IS(RAW(cuFuncGetParamInfo)(nullptr, 1, &offset, &size), INVALID_VALUE);
  IS(RAW(cuKernelGetParamInfo)(nullptr, 1, &offset, &size), INVALID_VALUE);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(in_a_context_a_library_is_a_module) {
  const Loaded loaded;
  const OwnContext context;
  SetStack({context.get()});
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  IS(RAW(cuKernelGetFunction)(nullptr, loaded.nothing), INVALID_VALUE);
  IS(RAW(cuKernelGetFunction)(&function, nullptr), INVALID_HANDLE);
  IS(RAW(cuLibraryGetModule)(nullptr, loaded.library), INVALID_VALUE);
  IS(RAW(cuLibraryGetModule)(&module, nullptr), INVALID_HANDLE);
  function = loaded.Function();
  module = loaded.Module();
  BOOST_CHECK(loaded.Function() == function);
  BOOST_CHECK(loaded.Module() == module);
  CUfunction found = nullptr;
  OK(RAW(cuModuleGetFunction)(&found, module, "nothing"));
  BOOST_CHECK(found == function);
  IS(RAW(cuModuleUnload)(module), NOT_PERMITTED);
  OK(Launch(function, nullptr));
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(functions_of_a_module_are_counted_and_listed) {
  const Loaded loaded;
  const OwnContext context;
  SetStack({context.get()});
  const CUmodule module = loaded.Module();
  const CUfunction function = loaded.Function();
  SetStack({});  // not needed for what follows
  unsigned count = 0;
  OK(RAW(cuModuleGetFunctionCount)(&count, module));
  BOOST_TEST(count == 2u);
  CUfunction functions[3] = {};
  OK(RAW(cuModuleEnumerateFunctions)(functions, 1, module));
  BOOST_CHECK(functions[0] != nullptr && functions[1] == nullptr);
  OK(RAW(cuModuleEnumerateFunctions)(functions, 3, module));
  BOOST_CHECK(functions[2] == nullptr);
  BOOST_CHECK(functions[0] == function || functions[1] == function);
  OK(RAW(cuModuleEnumerateFunctions)(functions, 0, module));
  IS(RAW(cuModuleEnumerateFunctions)(nullptr, 0, module), INVALID_VALUE);
  IS(RAW(cuModuleEnumerateFunctions)(functions, 1, nullptr), INVALID_HANDLE);
  IS(RAW(cuModuleGetFunctionCount)(nullptr, module), INVALID_VALUE);
  IS(RAW(cuModuleGetFunctionCount)(&count, nullptr), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(a_function_knows_its_module_and_name) {
  const Loaded loaded;
  const OwnContext context;
  SetStack({context.get()});
  const CUmodule module = loaded.Module();
  const CUfunction function = loaded.Function();
  SetStack({});  // not needed for what follows
  CUmodule owner = nullptr;
  const char* name = nullptr;
  CUfunctionLoadingState state;
  OK(RAW(cuFuncGetModule)(&owner, function));
  BOOST_CHECK(owner == module);
  OK(RAW(cuFuncGetName)(&name, function));
  BOOST_TEST(name == std::string("nothing"));
  OK(RAW(cuFuncLoad)(function));
  OK(RAW(cuFuncIsLoaded)(&state, function));
  BOOST_CHECK(state == CU_FUNCTION_LOADING_STATE_LOADED);
  IS(RAW(cuFuncGetModule)(nullptr, function), INVALID_VALUE);
  IS(RAW(cuFuncGetModule)(&owner, nullptr), INVALID_VALUE);
  IS(RAW(cuFuncGetName)(nullptr, function), INVALID_VALUE);
  IS(RAW(cuFuncGetName)(&name, nullptr), INVALID_VALUE);
  IS(RAW(cuFuncLoad)(nullptr), INVALID_HANDLE);
  IS(RAW(cuFuncIsLoaded)(nullptr, function), INVALID_VALUE);
  IS(RAW(cuFuncIsLoaded)(&state, nullptr), INVALID_HANDLE);
  CUmoduleLoadingMode mode;
  OK(RAW(cuModuleGetLoadingMode)(&mode));
}

BOOST_AUTO_TEST_CASE(a_kernel_can_be_launched_but_is_no_function) {
  const Loaded loaded;
  const OwnContext context;
  SetStack({context.get()});
  OK(Launch(loaded.nothing, nullptr));
  OK(RAW(cuCtxSynchronize)());
  const Loaded lazy;
  CheckIsGone(reinterpret_cast<CUfunction>(lazy.nothing));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(every_context_has_its_own_function) {
  const Loaded loaded;
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  const CUfunction in_a = loaded.Function();
  const CUmodule module = loaded.Module();
  const CUstream stream = NewStream();
  CUdeviceptr result = 0;
  OK(RAW(cuMemAlloc)(&result, sizeof(unsigned)));
  SetStack({b.get()});
  BOOST_CHECK(loaded.Function() != in_a);
  BOOST_CHECK(loaded.Module() != module);
  const CUstream other = NewStream();
  IS(Launch(in_a, other), INVALID_HANDLE);
  IS(Launch(in_a, nullptr), INVALID_HANDLE);
  OK(Launch(in_a, stream));
  // A kernel goes where the stream is.
  OK(Launch(loaded.nothing, other));
  OK(Launch(loaded.nothing, nullptr));
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
  unsigned value = 7;
  void* parameters[] = {&result, &value};
  OK(RAW(cuLaunchKernel)(reinterpret_cast<CUfunction>(loaded.store), 1, 1, 1, 1, 1, 1, 0, stream,
                         parameters, nullptr));
  OK(RAW(cuStreamSynchronize)(stream));
  SetStack({a.get()});
  value = 0;
  OK(RAW(cuMemcpyDtoH)(&value, result, sizeof(value)));
  BOOST_TEST(value == 7u);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_library_survives_a_context) {
  const Loaded loaded;
  OwnContext a;
  SetStack({a.get()});
  const CUfunction in_a = loaded.Function();
  OK(RAW(cuCtxDestroy)(a.release()));
  const OwnContext b;
  SetStack({b.get()});
  CheckIsGone(in_a);
  IS(Launch(in_a, nullptr), INVALID_HANDLE);
  OK(Launch(loaded.nothing, nullptr));
  OK(Launch(loaded.Function(), nullptr));
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_library_survives_a_reset) {
  const Loaded loaded;
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  const CUfunction before = loaded.Function();
  const CUmodule module = loaded.Module();
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  CUfunction function = nullptr;
  CUmodule ignored = nullptr;
  const char* name = nullptr;
  IS(RAW(cuKernelGetFunction)(&function, loaded.nothing), CONTEXT_IS_DESTROYED);
  IS(RAW(cuLibraryGetModule)(&ignored, loaded.library), CONTEXT_IS_DESTROYED);
  IS(Launch(loaded.nothing, nullptr), CONTEXT_IS_DESTROYED);
  OK(RAW(cuKernelGetName)(&name, loaded.nothing));
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  BOOST_CHECK(loaded.Function() != before);
  BOOST_CHECK(loaded.Module() != module);
  OK(Launch(loaded.nothing, nullptr));
  IS(Launch(before, nullptr), INVALID_HANDLE);
  OK(RAW(cuCtxSynchronize)());
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  RAW(cuDevicePrimaryCtxRelease)(0);  // the retain that the reset may have taken
}

BOOST_AUTO_TEST_CASE(unloading_takes_modules_and_functions_along) {
  Loaded loaded;
  const OwnContext context;
  SetStack({context.get()});
  const CUfunction function = loaded.Function();
  const CUmodule module = loaded.Module();
  OK(Launch(function, nullptr));
  loaded.Unload();
  OK(RAW(cuCtxSynchronize)());
  IS(Launch(function, nullptr), INVALID_HANDLE);
  CheckIsGone(function);
  CUfunction found = nullptr;
  IS(RAW(cuModuleGetFunction)(&found, module, "nothing"), INVALID_HANDLE);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(only_unloading_invalidates_a_capture) {
  for (const CUstreamCaptureMode mode : kModes) {
    const Guest guest;
    const bool allowed = mode == kRelaxed;
    OK(Begin(guest.stream, mode));
    Loaded loaded;
    CUfunction function = loaded.Function();
    OK(RAW(cuFuncLoad)(function));
    OK(Launch(function, guest.stream));
    loaded.Module();
    const Loaded lazy;
    OK(Launch(lazy.nothing, guest.stream));
    BOOST_TEST(StatusOf(guest.stream) == kActive);
    CUgraph graph = nullptr;
    size_t count = 0;
    OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
    OK(RAW(cuGraphGetNodes)(graph, nullptr, &count));
    BOOST_TEST(count == 2u);
    OK(RAW(cuGraphDestroy)(graph));
    OK(Begin(guest.stream, mode));
    const CUresult code = RAW(cuLibraryUnload)(loaded.library);
    BOOST_CHECK_EQUAL(code, allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    BOOST_TEST(StatusOf(guest.stream) == (allowed ? kActive : kLost));
    if (allowed) loaded.library = nullptr;
    End(guest.stream);
  }
}

BOOST_AUTO_TEST_CASE(libraries_are_counted, *OnlySim()) {
  const auto before = Sim::Live();
  {
    const Loaded loaded;
    const OwnContext context;
    SetStack({context.get()});
    loaded.Function();
    SetStack({});
    BOOST_TEST(Sim::Live().libraries == before.libraries + 1);
    BOOST_TEST(Sim::Live().modules == before.modules + 1);
  }
  BOOST_CHECK(Sim::Live() == before);
}

namespace {

int Ends(CUresult code) { return static_cast<int>(code); }

CUkernel UnloadedKernel() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  RAW(cuInit)(0);
  Load(&library);
  RAW(cuLibraryGetKernel)(&kernel, library, "nothing");
  RAW(cuLibraryUnload)(library);
  return kernel;
}

}  // namespace

CHILD(unload_twice) {
  CUlibrary library = nullptr;
  RAW(cuInit)(0);
  Load(&library);
  RAW(cuLibraryUnload)(library);
  return Ends(RAW(cuLibraryUnload)(library));
}
CHILD(use_unloaded_kernel) {
  CUfunction function = nullptr;
  return Ends(RAW(cuKernelGetFunction)(&function, UnloadedKernel()));
}
CHILD(null_loading_mode) {
  RAW(cuInit)(0);
  return Ends(RAW(cuModuleGetLoadingMode)(nullptr));
}

BOOST_AUTO_TEST_CASE(what_crashes_a_real_driver_panics, *OnlySim()) {
  const auto check = [](const char* child, const std::string& text) {
    const cudasim_test::Ended ended = cudasim_test::RunChild(child);
    BOOST_TEST(ended.code == -SIGABRT, child);
    BOOST_TEST((ended.output.find(text) != std::string::npos), child << ": " << ended.output);
  };
  check("unload_twice", "the library was unloaded");
  check("use_unloaded_kernel", "the library of the kernel was unloaded");
  check("null_loading_mode", "a null argument");
}

BOOST_AUTO_TEST_SUITE_END()
