// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/kernel.h"

#include <vector>

#include "cuguest/context_guard.h"
#include "test/objects/code/code.h"
#include "test/support/failed_calls.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(kernel)

using namespace module_test;
using cuguest::ContextGuard;
using cuguest::Kernel;
using cuguest_test::NeedsDriver;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TheDriver;

namespace {

struct Fixture {
  OwnContext context;
  ContextRef here = Ref(context.get());
  Module module = Module::Load(Ptx()).value();
  Kernel store = module.GetKernel("store").value();
  Kernel bounded = module.GetKernel("bounded").value();
};

// Somebody else's library and module, in a context.
struct Foreign {
  Foreign() {
    const ContextGuard guard(context.get());
    BOOST_TEST(RAW(cuLibraryLoadData)(&library, kCode, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
               CUDA_SUCCESS);
    BOOST_TEST(RAW(cuLibraryGetKernel)(&kernel, library, "store") == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuModuleLoadData)(&module, kCode) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuModuleGetFunction)(&function, module, "store") == CUDA_SUCCESS);
  }
  ~Foreign() {
    BOOST_TEST(RAW(cuLibraryUnload)(library) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuModuleUnload)(module) == CUDA_SUCCESS);
  }
  OwnContext context;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(attributes_are_the_drivers, Fixture) {
  const Kernel::Attributes attributes = bounded.AttributesIn(here).value();
  BOOST_TEST(attributes.max_threads_per_block == 64);
  BOOST_TEST(attributes.static_shared_bytes == 1024);
  BOOST_TEST(attributes.max_dynamic_shared_bytes == 48 * 1024 - 1024);
  const CUfunction function = bounded.FunctionIn(here).value();
  const auto value = [function](CUfunction_attribute attribute) {
    int number = 0;
    BOOST_TEST(RAW(cuFuncGetAttribute)(&number, attribute, function) == CUDA_SUCCESS);
    return number;
  };
  BOOST_TEST(attributes.constant_bytes == value(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  BOOST_TEST(attributes.local_bytes == value(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  BOOST_TEST(attributes.registers == value(CU_FUNC_ATTRIBUTE_NUM_REGS));
  BOOST_TEST(attributes.ptx_version == value(CU_FUNC_ATTRIBUTE_PTX_VERSION));
  BOOST_TEST(attributes.binary_version == value(CU_FUNC_ATTRIBUTE_BINARY_VERSION));
}

BOOST_FIXTURE_TEST_CASE(shared_memory_is_raised_in_one_context, Fixture) {
  const OwnContext other;
  constexpr int kMore = 64 * 1024;
  DONE(bounded.SetMaxDynamicSharedBytes(here, kMore));
  BOOST_TEST(bounded.AttributesIn(here)->max_dynamic_shared_bytes == kMore);
  BOOST_TEST(bounded.AttributesIn(Ref(other.get()))->max_dynamic_shared_bytes == 48 * 1024 - 1024);
}

BOOST_FIXTURE_TEST_CASE(more_shared_memory_than_there_is_is_refused, Fixture) {
  const absl::Status status = bounded.SetMaxDynamicSharedBytes(here, 1 << 20);
  REFUSED(status, kInvalidArgument, "1048576 bytes of dynamic shared memory beside 1024 static");
  int most = 0;
  BOOST_TEST(RAW(cuDeviceGetAttribute)(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                       0) == CUDA_SUCCESS);
  REFUSED(status, kInvalidArgument, "the device has " + std::to_string(most) + " for a block");
  REFUSED(bounded.SetMaxDynamicSharedBytes(here, std::size_t{1} << 40), kInvalidArgument,
          "use kernel \"bounded\"");
  BOOST_TEST(bounded.AttributesIn(here)->max_dynamic_shared_bytes == 48 * 1024 - 1024);
}

BOOST_FIXTURE_TEST_CASE(parameters_are_as_the_driver_lays_them_out, Fixture,
                        *NeedsDriver(12040, "cuFuncGetParamInfo")) {
  const std::vector<Kernel::Parameter> expected = {{0, 8}, {8, 4}};
  BOOST_TEST((store.ParametersIn(here).value() == expected));
  BOOST_TEST(bounded.ParametersIn(here)->empty());
}

// The image says how many there are; of a kernel without one only a call that fails does.
BOOST_FIXTURE_TEST_CASE(only_a_borrowed_kernel_is_asked_too_much, Fixture,
                        *OnlySim() * NeedsDriver(12040, "cuFuncGetParamInfo")) {
  const std::vector<std::string> one_too_many = {"cuFuncGetParamInfo: CUDA_ERROR_INVALID_VALUE"};
  const Kernel borrowed = Kernel::Borrow(store.FunctionIn(here).value(), here).value();
  for (const Kernel& kernel : {store, bounded, borrowed}) {
    DONE(kernel.Preload(here));
    cuguest_test::FailedCalls failed;
    BOOST_TEST(kernel.ParametersIn(here).ok());
    BOOST_TEST((failed.Take() == (kernel == borrowed ? one_too_many : std::vector<std::string>())));
  }
}

BOOST_FIXTURE_TEST_CASE(asking_whether_it_is_loaded_does_not_load, Fixture,
                        *NeedsDriver(12040, "cuFuncIsLoaded")) {
  BOOST_TEST(!store.IsLoaded(here).value());
  BOOST_TEST(!store.IsLoaded(here).value());
  DONE(store.Preload(here));
  BOOST_TEST(store.IsLoaded(here).value());
  BOOST_TEST(!bounded.IsLoaded(here).value());
}

BOOST_FIXTURE_TEST_CASE(calls_cost_what_the_header_says, Fixture,
                        *OnlySim() * NeedsDriver(12040, "the costs are of its entries")) {
  const auto cost = [](const auto& call) {
    cuguest_test::BeginCount();
    DONE(call());
    return Sim::TotalCalls();
  };
  SetStack({context.get()});
  DONE(store.Preload(here));
  BOOST_TEST(cost([&] { return store.FunctionIn(here).status(); }) == 0U);
  BOOST_TEST(cost([&] { return store.FunctionIn(context.get()).status(); }) == 1U);
  BOOST_TEST(cost([&] { return store.Preload(here); }) == 6U);
  BOOST_TEST(cost([&] { return store.IsLoaded(here).status(); }) == 2U);
  BOOST_TEST(cost([&] { return store.AttributesIn(here).status(); }) == 13U);
  BOOST_TEST(cost([&] { return store.SetMaxDynamicSharedBytes(here, 4096); }) == 6U);
  BOOST_TEST(cost([&] { return store.SetMaxDynamicSharedBytes(here, 49 << 10); }) == 8U);
  BOOST_TEST(cost([&] { return store.ParametersIn(here).status(); }) == 7U);
  BOOST_TEST(cost([&] { return module.GetKernel("store").status(); }) == 0U);
  BOOST_TEST(cost([&] { return module.GetGlobal<float>(here, "factor").status(); }) == 8U);
  BOOST_TEST(cost([&] { return Module::Load(Ptx()).status(); }) == 7U);  // and unloading
  BOOST_TEST(cost([&] { return Module::LoadIn(here, Ptx()).status(); }) == 10U + 3U);
  SetStack({});
  BOOST_TEST(cost([&] { return store.Preload(here); }) == 8U);
  BOOST_TEST(cost([&] { return module.GetGlobal<float>(here, "factor").status(); }) == 10U);
  BOOST_TEST(cost([&] { return Module::LoadIn(here, Ptx()).status(); }) == 12U + 3U);
}

BOOST_FIXTURE_TEST_CASE(an_empty_kernel_says_so, Fixture) {
  const Kernel empty;
  BOOST_TEST(!empty);
  BOOST_TEST(empty.name() == "");
  REFUSED(empty.FunctionIn(here).status(), kFailedPrecondition, "empty kernel");
  REFUSED(empty.FunctionIn(context.get()).status(), kFailedPrecondition, "empty kernel");
  REFUSED(empty.Preload(here), kFailedPrecondition, "empty kernel");
  REFUSED(empty.IsLoaded(here).status(), kFailedPrecondition, "empty kernel");
  REFUSED(empty.AttributesIn(here).status(), kFailedPrecondition, "empty kernel");
  REFUSED(empty.ParametersIn(here).status(), kFailedPrecondition, "empty kernel");
  REFUSED(empty.SetMaxDynamicSharedBytes(here, 0), kFailedPrecondition, "empty kernel");
}

BOOST_AUTO_TEST_SUITE(borrowed, *NeedsDriver(12000, "CUlibrary and CUkernel"))

BOOST_FIXTURE_TEST_CASE(a_kernel_is_good_everywhere, Foreign,
                        *NeedsDriver(12040, "cuKernelGetName and cuFuncGetParamInfo")) {
  const OwnContext other;
  const auto borrowed = Kernel::Borrow(kernel);
  DONE(borrowed.status());
  BOOST_TEST(borrowed->name() == "store");
  for (const CUcontext in : {context.get(), other.get()}) {
    const ContextGuard guard(in);
    CUfunction expected = nullptr;
    BOOST_TEST(RAW(cuKernelGetFunction)(&expected, kernel) == CUDA_SUCCESS);
    BOOST_TEST((borrowed->FunctionIn(in).value() == expected));
  }
  DONE(borrowed->Preload(Ref(other.get())));
  BOOST_TEST(borrowed->ParametersIn(Ref(other.get()))->size() == 2U);
}

BOOST_FIXTURE_TEST_CASE(a_function_is_good_in_its_own_context, Foreign,
                        *NeedsDriver(12030, "cuFuncGetName")) {
  const OwnContext other;
  const auto borrowed = Kernel::Borrow(function, Ref(context.get()));
  DONE(borrowed.status());
  BOOST_TEST(borrowed->name() == "store");
  BOOST_TEST((borrowed->FunctionIn(context.get()).value() == function));
  DONE(borrowed->Preload(Ref(context.get())));
  const absl::Status status = borrowed->FunctionIn(other.get()).status();
  REFUSED(status, kFailedPrecondition, "use kernel \"store\", context 0x");
  REFUSED(status, kFailedPrecondition, "it is a function of context 0x");
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_borrowed_is_refused, Foreign) {
  REFUSED(Kernel::Borrow(CUkernel{nullptr}).status(), kInvalidArgument, "borrow a kernel");
  REFUSED(Kernel::Borrow(CUfunction{nullptr}, Ref(context.get())).status(), kInvalidArgument,
          "borrow a function");
  REFUSED(Kernel::Borrow(function, ContextRef()).status(), kFailedPrecondition,
          "borrow a function");
}

BOOST_FIXTURE_TEST_CASE(nothing_of_the_owner_is_taken, Foreign,
                        *NeedsDriver(12030, "cuKernelGetName")) {
  { const Kernel borrowed = Kernel::Borrow(kernel).value(); }
  {
    const Kernel borrowed = Kernel::Borrow(function, Ref(context.get())).value();
    DONE(borrowed.FunctionIn(context.get()).status());
  }
  BOOST_TEST((Kernel::Borrow(kernel)->name() == "store"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
