// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What functions and kernels say of themselves, and what can be set of them.

#include <csignal>
#include <string>

#include "test/launches.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(function_attribute_facts)

using namespace cudasim_facts;
using cudasim_test::OnlySim;

namespace {

constexpr auto kMaxThreads = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
constexpr auto kMaxDynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
constexpr auto kNoAttribute = CU_FUNC_ATTRIBUTE_MAX;

int Get(CUfunction function, CUfunction_attribute attribute) {
  int value = -7;
  OK(RAW(cuFuncGetAttribute)(&value, attribute, function));
  return value;
}

int Get(CUkernel kernel, CUfunction_attribute attribute) {
  int value = -7;
  OK(RAW(cuKernelGetAttribute)(&value, attribute, kernel, 0));
  return value;
}

CUresult Set(CUfunction function, CUfunction_attribute attribute, int value) {
  return RAW(cuFuncSetAttribute)(function, attribute, value);
}

CUresult Set(CUkernel kernel, CUfunction_attribute attribute, int value, CUdevice device = 0) {
  return RAW(cuKernelSetAttribute)(attribute, value, kernel, device);
}

// A kernel with dynamic shared memory, of a library.
struct Kernel {
  Kernel() {
    OK(RAW(cuLibraryLoadData)(&library, kLaunchPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(RAW(cuLibraryGetKernel)(&kernel, library, "with_dynamic"));
  }
  ~Kernel() { OK(RAW(cuLibraryUnload)(library)); }

  CUfunction Function() const {
    CUfunction function = nullptr;
    OK(RAW(cuKernelGetFunction)(&function, kernel));
    return function;
  }

  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(code_says_what_bounds_a_launch) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  BOOST_TEST(Get(nothing, kMaxThreads) == 1024);
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 0);
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES) == 12);  // of the module
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0);
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_NUM_REGS) >= 1);
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_PTX_VERSION) == 90);
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 90);
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA) == 0);
  BOOST_TEST(Get(nothing, kMaxDynamic) == 49152);
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) == -1);
  BOOST_TEST(Get(launcher.Function("bounded"), kMaxThreads) == 128);
  BOOST_TEST(Get(launcher.Function("required"), kMaxThreads) == 1024);
}

BOOST_AUTO_TEST_CASE(static_shared_memory_leaves_less_for_dynamic) {
  const Launcher launcher;
  const CUfunction own = launcher.Function("with_shared");
  const CUfunction of_module = launcher.Function("with_module_shared");
  BOOST_TEST(Get(own, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 40960);
  BOOST_TEST(Get(own, kMaxDynamic) == 8192);
  BOOST_TEST(Get(of_module, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 2048);
  BOOST_TEST(Get(of_module, kMaxDynamic) == 47104);
  BOOST_TEST(Get(launcher.Function("with_dynamic"), CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 0);
}

BOOST_AUTO_TEST_CASE(code_says_what_clusters_it_takes) {
  const Launcher launcher;
  const CUfunction clustered = launcher.Function("clustered");
  BOOST_TEST(Get(clustered, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) == 1);
  BOOST_TEST(Get(clustered, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH) == 2);
  BOOST_TEST(Get(clustered, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT) == 1);
  BOOST_TEST(Get(clustered, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH) == 1);
  const CUfunction must = launcher.Function("must_cluster");
  BOOST_TEST(Get(must, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) == 1);
  BOOST_TEST(Get(must, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH) == 0);
  const CUfunction nothing = launcher.Function("nothing");
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) == 0);
  BOOST_TEST(Get(nothing, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) == 0);
  IS(Set(clustered, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(some_can_be_set) {
  struct Row {
    CUfunction_attribute attribute;
    std::vector<int> good;
    std::vector<int> bad;
  };
  const Row rows[] = {
      {kMaxDynamic, {0, 1, 1000, 232448}, {-1, 232449}},
      {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, {0, 50, 100, -1}, {-2, 101}},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, {300000, 2, 0}, {-1}},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, {300000, 2, 0}, {-1}},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, {300000, 2, 0}, {-1}},
      {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, {1, 0}, {}},
      {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, {1, 2, 0}, {-1, 3}},
  };
  const Launcher launcher;
  const CUfunction store = launcher.Function("store");
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(row.attribute) {
      for (const int value : row.good) {
        OK(Set(store, row.attribute, value));
        BOOST_TEST(Get(store, row.attribute) == value);
      }
      for (const int value : row.bad) IS(Set(store, row.attribute, value), INVALID_VALUE);
      BOOST_TEST(Get(store, row.attribute) == row.good.back());
    }
  }
  OK(Set(store, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, -5));
  BOOST_TEST(Get(store, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) == 1);
}

BOOST_AUTO_TEST_CASE(most_cannot_be_set) {
  const Launcher launcher;
  const CUfunction store = launcher.Function("store");
  for (const CUfunction_attribute attribute :
       {kMaxThreads, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_NUM_REGS,
        CU_FUNC_ATTRIBUTE_PTX_VERSION, CU_FUNC_ATTRIBUTE_BINARY_VERSION,
        CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
        kNoAttribute}) {
    for (const int value : {0, 1, 100}) IS(Set(store, attribute, value), INVALID_VALUE);
  }
}

BOOST_AUTO_TEST_CASE(wrong_arguments) {
  const Launcher launcher;
  const CUfunction store = launcher.Function("store");
  int value = 0;
  IS(RAW(cuFuncGetAttribute)(nullptr, kMaxThreads, store), INVALID_VALUE);
  IS(RAW(cuFuncGetAttribute)(&value, kNoAttribute, store), INVALID_VALUE);
  IS(RAW(cuFuncGetAttribute)(&value, OutOfRange<CUfunction_attribute>(-1), store), INVALID_VALUE);
  IS(Set(CUfunction{}, kMaxDynamic, 4), INVALID_HANDLE);
  IS(RAW(cuFuncSetCacheConfig)(nullptr, CU_FUNC_CACHE_PREFER_L1), INVALID_HANDLE);
  for (const int config : {4, -1}) {
    IS(RAW(cuFuncSetCacheConfig)(store, OutOfRange<CUfunc_cache>(config)), INVALID_VALUE);
  }
}

BOOST_AUTO_TEST_CASE(no_context_is_needed_and_no_capture_harmed) {
  const Launcher launcher;
  const CUfunction store = launcher.Function("store");
  SetStack({});
  const auto all = [&] {
    BOOST_TEST(Get(store, kMaxThreads) == 1024);
    OK(Set(store, kMaxDynamic, 1000));
    for (const CUfunc_cache config : {CU_FUNC_CACHE_PREFER_NONE, CU_FUNC_CACHE_PREFER_SHARED,
                                      CU_FUNC_CACHE_PREFER_L1, CU_FUNC_CACHE_PREFER_EQUAL}) {
      OK(RAW(cuFuncSetCacheConfig)(store, config));
    }
  };
  all();
  SetStack({launcher.context.get()});
  OK(Begin(launcher.stream, kGlobal));
  all();
  BOOST_TEST(StatusOf(launcher.stream) == kActive);
  End(launcher.stream);
}

BOOST_AUTO_TEST_CASE(a_function_of_a_gone_context_is_none) {
  Launcher launcher;
  const CUfunction store = launcher.Function("store");
  OK(RAW(cuCtxDestroy)(launcher.context.release()));
  int value = 0;
  IS(RAW(cuFuncGetAttribute)(&value, kMaxThreads, store), INVALID_HANDLE);
  IS(Set(store, kMaxDynamic, 100), INVALID_HANDLE);
  IS(RAW(cuFuncSetCacheConfig)(store, CU_FUNC_CACHE_PREFER_L1), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(functions_follow_their_kernel) {
  const Kernel of_library;
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get()});
  const CUfunction in_a = of_library.Function();
  BOOST_TEST(Get(of_library.kernel, kMaxDynamic) == 49152);
  OK(Set(of_library.kernel, kMaxDynamic, 60000));
  BOOST_TEST(Get(of_library.kernel, kMaxDynamic) == 60000);
  BOOST_TEST(Get(in_a, kMaxDynamic) == 60000);
  SetStack({b.get()});
  const CUfunction in_b = of_library.Function();
  BOOST_TEST(Get(in_b, kMaxDynamic) == 60000);
  SetStack({});
  // What was set of a function stays, and is no other's.
  OK(Set(in_a, kMaxDynamic, 70000));
  BOOST_TEST(Get(of_library.kernel, kMaxDynamic) == 60000);
  BOOST_TEST(Get(in_b, kMaxDynamic) == 60000);
  OK(Set(of_library.kernel, kMaxDynamic, 80000));
  BOOST_TEST(Get(in_a, kMaxDynamic) == 70000);
  BOOST_TEST(Get(in_b, kMaxDynamic) == 80000);
}

BOOST_AUTO_TEST_CASE(a_kernel_is_set_on_a_device) {
  const Kernel of_library;
  const CUkernel kernel = of_library.kernel;
  OK(Set(kernel, kMaxDynamic, 90000));  // nothing is current
  IS(Set(kernel, kMaxDynamic, 300000), INVALID_VALUE);
  IS(Set(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS, 3), INVALID_VALUE);
  IS(Set(kernel, kNoAttribute, 3), INVALID_VALUE);
  IS(Set(kernel, OutOfRange<CUfunction_attribute>(-1), 3), INVALID_VALUE);
  IS(Set(kernel, kMaxDynamic, 1000, 99), INVALID_DEVICE);
  IS(Set(CUkernel{}, kMaxDynamic, 1000), INVALID_HANDLE);
  BOOST_TEST(Get(kernel, kMaxDynamic) == 90000);
  BOOST_TEST(Get(kernel, kMaxThreads) == 1024);
  OK(RAW(cuKernelSetCacheConfig)(kernel, CU_FUNC_CACHE_PREFER_L1, 0));
  IS(RAW(cuKernelSetCacheConfig)(kernel, OutOfRange<CUfunc_cache>(4), 0), INVALID_VALUE);
  IS(RAW(cuKernelSetCacheConfig)(kernel, CU_FUNC_CACHE_PREFER_L1, 99), INVALID_DEVICE);
  IS(RAW(cuKernelSetCacheConfig)(nullptr, CU_FUNC_CACHE_PREFER_L1, 0), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(a_kernel_is_no_function) {
  const Kernel of_library;
  const auto function = reinterpret_cast<CUfunction>(of_library.kernel);
  const OwnContext context;
  SetStack({context.get()});
  int value = 0;
  IS(Set(function, kMaxDynamic, 500), INVALID_HANDLE);
  IS(RAW(cuFuncGetAttribute)(&value, kMaxDynamic, function), INVALID_HANDLE);
  IS(RAW(cuFuncSetCacheConfig)(function, CU_FUNC_CACHE_PREFER_L1), INVALID_HANDLE);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(what_is_set_of_a_kernel_survives_a_reset) {
  const Kernel of_library;
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  OK(Set(of_library.kernel, kMaxDynamic, 60000));
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  BOOST_TEST(Get(of_library.kernel, kMaxDynamic) == 60000);
  BOOST_TEST(Get(of_library.Function(), kMaxDynamic) == 60000);
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  RAW(cuDevicePrimaryCtxRelease)(0);  // the retain that the reset may have taken
}

BOOST_AUTO_TEST_CASE(older_ptx_says_so) {
  const OwnContext context;
  SetStack({context.get()});
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  static const char kOlder[] =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
  OK(RAW(cuModuleLoadData)(&module, kOlder));
  OK(RAW(cuModuleGetFunction)(&function, module, "k"));
  BOOST_TEST(Get(function, CU_FUNC_ATTRIBUTE_PTX_VERSION) == 80);
  BOOST_TEST(Get(function, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 90);
  SetStack({});
}

CHILD(set_a_negative_attribute) {
  RAW(cuInit)(0);
  const Launcher launcher;
  return static_cast<int>(Set(launcher.Function("store"), OutOfRange<CUfunction_attribute>(-1), 4));
}

BOOST_AUTO_TEST_CASE(what_crashes_a_real_driver_panics, *OnlySim()) {
  const cudasim_test::Ended ended = cudasim_test::RunChild("set_a_negative_attribute");
  BOOST_TEST(ended.code == -SIGABRT);
  BOOST_TEST((ended.output.find("a negative attribute") != std::string::npos), ended.output);
}

BOOST_AUTO_TEST_SUITE_END()
