// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/module.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/objects/copy.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/objects/code/code.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(module)

using namespace module_test;
using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::DeviceView;
using cuguest::HostSpan;
using cuguest::Module;
using cuguest::PrimaryContext;
using cuguest_test::GetStack;
using cuguest_test::HasDriver;
using cuguest_test::NeedsDriver;
using cuguest_test::OnlySim;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TheDriver;

namespace {

using Names = std::vector<std::string>;

struct Fixture {
  Fixture() { Sim::RegisterKernel("store", &Store); }
  OwnContext context;
  ContextRef here = Ref(context.get());
  Module module = Module::Load(Ptx()).value();
};

// What `kernel` stores in `context`.
unsigned Stored(const Kernel& kernel, const ContextRef& context, unsigned value) {
  const ContextGuard guard(context);
  BOOST_TEST_REQUIRE(guard.ok());
  CUdeviceptr memory = 0;
  unsigned stored = 0;
  BOOST_TEST(RAW(cuMemAlloc)(&memory, sizeof(value)) == CUDA_SUCCESS);
  void* parameters[] = {&memory, &value};
  const auto function = kernel.FunctionIn(context);
  DONE(function.status());
  if (function.ok()) {
    BOOST_TEST(RAW(cuLaunchKernel)(*function, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, parameters,
                                   nullptr) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuMemcpyDtoH)(&stored, memory, sizeof(stored)) == CUDA_SUCCESS);
  }
  BOOST_TEST(RAW(cuMemFree)(memory) == CUDA_SUCCESS);
  return stored;
}

// What Load() and LoadIn() say of bad code: an older driver compiles it at its first use in a
// context, so that Load() succeeds.
std::vector<absl::Status> Failures(const absl::StatusOr<Module>& loaded,
                                   const absl::Status& loaded_in) {
  if (HasDriver(12000)) return {loaded.status(), loaded_in};
  DONE(loaded.status());
  return {loaded_in};
}

// Elements of a variable.
template <typename T>
std::vector<T> ValuesOf(const DeviceView<T>& view) {
  std::vector<T> values(view.size());
  DONE(Download(view, values));
  return values;
}

void Fill(const DeviceView<unsigned>& view, unsigned value) {
  const std::vector<unsigned> values(view.size(), value);
  DONE(Upload(view, values));
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(code_runs_in_every_context, Fixture) {
  const Kernel store = module.GetKernel("store").value();
  const OwnContext other;
  BOOST_TEST(Stored(store, here, 7) == 7U);
  BOOST_TEST(Stored(store, Ref(other.get()), 8) == 8U);
  BOOST_TEST((*store.FunctionIn(here) != *store.FunctionIn(other.get())));
  BOOST_TEST((*store.FunctionIn(here) == *store.FunctionIn(context.get())));
}

namespace {

Module::Once g_code(kCode, "once");
Kernel::Once g_store(g_code, "store");
Kernel::Once g_missing(g_code, "missing");
static_assert(std::is_trivially_destructible_v<Module::Once> &&
              std::is_trivially_destructible_v<Kernel::Once>);

}  // namespace

BOOST_FIXTURE_TEST_CASE(code_is_loaded_once, Fixture) {
  const auto store = g_store.Get();
  DONE(store.status());
  BOOST_TEST(Stored(**store, here, 7) == 7U);
  std::vector<std::thread> threads;
  std::atomic<int> same{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { same += *g_store.Get() == *store && g_code.Get().ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(same == 8);
  BOOST_TEST((*g_code.Get())->name() == "once");
  BOOST_TEST((g_missing.Get().status().code() == absl::StatusCode::kNotFound));
  static Module::Once of_bytes(
      HostSpan<const unsigned char>(reinterpret_cast<const unsigned char*>(kCode), sizeof(kCode)),
      "bytes");
  DONE(of_bytes.Get().status());
}

// A failure is not kept; of threads that load it at the same time all get the same.
BOOST_AUTO_TEST_CASE(code_is_loaded_by_the_next_after_a_failure,
                     *OnlySim() * NeedsDriver(12000, "cuLibraryLoadData")) {
  static Module::Once code(kCode, "again");
  static Kernel::Once store(code, "store");
  static const Kernel* first = nullptr;
  static std::atomic<bool> is_raced{false};
  Sim::ResetCalls();
  Sim::FailCall("cuLibraryLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY);
  BOOST_TEST((store.Get().status().code() == absl::StatusCode::kResourceExhausted));
  // While this thread loads, another one does, and is done first: no lock is held meanwhile.
  Sim::OnEveryCall([](const char* entry) {
    if (std::string_view(entry) != "cuLibraryLoadData" || is_raced.exchange(true)) return;
    std::thread([] { first = store.Get().value(); }).join();
  });
  const Kernel* const mine = store.Get().value();
  Sim::OnEveryCall(nullptr);
  BOOST_TEST(is_raced);
  BOOST_TEST((mine != nullptr && mine == first));
  BOOST_TEST(Sim::Calls("cuLibraryLoadData") - Sim::Calls("cuLibraryUnload") == 2U);
}

BOOST_AUTO_TEST_CASE(loading_needs_no_context_and_makes_none) {
  {
    const auto module = Module::Load(Ptx());
    DONE(module.status());
    DONE(module->GetKernel("store").status());
    BOOST_TEST(module->name() == "code");
  }
  BOOST_TEST(!PrimaryContext::Query(Device::Borrow(0)).active);
}

BOOST_FIXTURE_TEST_CASE(embedded_bytes_are_loaded, Fixture) {
  const HostSpan<const unsigned char> bytes(reinterpret_cast<const unsigned char*>(kCode),
                                            sizeof(kCode));
  const Module loaded = Module::Load(bytes, "embedded").value();
  BOOST_TEST(loaded.name() == "embedded");
  BOOST_TEST(Stored(loaded.GetKernel("store").value(), here, 7) == 7U);

  JitReport report;
  JitOptions verbose;
  verbose.verbose = true;
  const Module there = Module::LoadIn(here, bytes, "embedded", verbose, &report).value();
  BOOST_TEST(there.name() == "embedded");
  BOOST_TEST(Stored(there.GetKernel("store").value(), here, 8) == 8U);
  BOOST_TEST(report.error_log.empty());
}

BOOST_FIXTURE_TEST_CASE(ptx_is_loaded_from_text, Fixture) {
  std::string text = kCode;
  const Module module = Module::LoadIn(here, text, "text").value();
  const Module again = Module::Load(std::string_view(text), "again").value();
  text.assign(text.size(), '?');  // it was copied
  BOOST_TEST(Stored(module.GetKernel("store").value(), here, 7) == 7U);
  BOOST_TEST(Stored(again.GetKernel("store").value(), here, 8) == 8U);
  BOOST_TEST(again.name() == "again");
  JitReport report;
  report.error_log = "of an earlier load";
  REFUSED(Module::Load("", "none").status(), kInvalidArgument, "none");
  REFUSED(Module::LoadIn(here, "no code", "noise", {}, &report).status(), kInvalidArgument,
          "noise");
  BOOST_TEST(report.error_log.empty());
}

BOOST_FIXTURE_TEST_CASE(embedded_bytes_that_are_no_image_are_refused, Fixture) {
  constexpr unsigned char kNoise[] = {1, 2, 3, 4, 5, 6, 7, 8};
  JitReport report;
  report.error_log = "of an earlier load";
  REFUSED(Module::Load(cuguest::HostSpan<const unsigned char>(), "none").status(), kInvalidArgument,
          "none");
  REFUSED(Module::Load(kNoise, "noise").status(), kInvalidArgument, "noise");
  REFUSED(Module::LoadIn(here, kNoise, "noise", {}, &report).status(), kInvalidArgument, "noise");
  BOOST_TEST(report.error_log.empty());
  const HostSpan<const unsigned char> broken(reinterpret_cast<const unsigned char*>(kBroken),
                                             sizeof(kBroken));
  REFUSED(Module::LoadIn(here, broken, "broken", {}, &report).status(), kInvalidArgument, "broken");
  BOOST_TEST(!report.error_log.empty());
}

BOOST_FIXTURE_TEST_CASE(the_callers_stack_is_left_alone, Fixture) {
  const OwnContext other;
  for (const std::vector<CUcontext>& stack :
       {std::vector<CUcontext>{}, {other.get()}, {context.get(), other.get()}, {context.get()}}) {
    SetStack(stack);
    Module loaded = Module::LoadIn(here, Ptx()).value();
    DONE(loaded.GetKernel("store")->FunctionIn(here).status());
    DONE(loaded.GetGlobal<unsigned>(here, "counters").status());
    DONE(loaded.Preload(here));
    DONE(loaded.Release());
    BOOST_TEST(GetStack() == stack);
  }
  SetStack({});
}

BOOST_FIXTURE_TEST_CASE(kernels_are_listed, Fixture) {
  BOOST_TEST(module.KernelNames().value() == (Names{"_Z4bluri", "bounded", "store"}));
}

BOOST_FIXTURE_TEST_CASE(a_kernel_is_the_same_each_time, Fixture) {
  const Kernel first = module.GetKernel("store").value();
  BOOST_TEST((module.GetKernel("store").value() == first));
  BOOST_TEST((module.GetKernel("bounded").value() != first));
  BOOST_TEST(first.name() == "store");
}

BOOST_FIXTURE_TEST_CASE(an_unknown_kernel_is_met_with_the_names_there_are, Fixture) {
  const auto status = [this](std::string_view name) { return module.GetKernel(name).status(); };
  REFUSED(status("stone"), kNotFound, "the nearest is \"store\"; it has store, ");
  REFUSED(status("Stored"), kNotFound, "the nearest is \"store\"");
  REFUSED(status("blur"), kNotFound,
          "\"_Z4bluri\" is blur(int): declare it extern \"C\", or ask for the mangled name");
  REFUSED(status("matrix_multiply"), kNotFound, "of \"code\": there is none of that name; it has");
  BOOST_TEST(!Says(status("matrix_multiply"), "nearest"));
  BOOST_TEST((CodeOf(status("stone")) == CUDA_ERROR_NOT_FOUND));
}

BOOST_FIXTURE_TEST_CASE(names_that_are_none_are_refused, Fixture) {
  REFUSED(module.GetKernel("").status(), kInvalidArgument, "the name is empty");
  REFUSED(module.GetKernel({"store\0", 6}).status(), kInvalidArgument, "has a NUL in it");
  REFUSED(module.GetGlobal<int>(here, "").status(), kInvalidArgument, "the name is empty");
  REFUSED(module.GetGlobal<int>(here, {"factor\0x", 8}).status(), kInvalidArgument,
          "has a NUL in it");
}

BOOST_FIXTURE_TEST_CASE(variables_are_of_one_context_each, Fixture) {
  const OwnContext other;
  const auto mine = module.GetGlobal<unsigned>(here, "counters");
  const auto others = module.GetGlobal<unsigned>(Ref(other.get()), "counters");
  DONE(mine.status());
  DONE(others.status());
  BOOST_TEST(mine->size() == 4U);
  BOOST_TEST((mine->context() == here));
  BOOST_TEST((mine->device() == Device::Borrow(0)));
  BOOST_TEST(mine->get() != others->get());
  BOOST_TEST(ValuesOf(*mine) == (std::vector<unsigned>{1, 2, 3, 4}));
  Fill(*mine, 9);
  BOOST_TEST(ValuesOf(*mine) == (std::vector<unsigned>{9, 9, 9, 9}));
  BOOST_TEST(ValuesOf(*others) == (std::vector<unsigned>{1, 2, 3, 4}));
}

BOOST_FIXTURE_TEST_CASE(constants_are_variables, Fixture) {
  const auto factor = module.GetGlobal<float>(here, "factor");
  DONE(factor.status());
  BOOST_TEST(ValuesOf(*factor) == std::vector<float>{1});
  const std::vector<float> two{2};
  DONE(Upload(*factor, two));
  BOOST_TEST(ValuesOf(*module.GetGlobal<float>(here, "factor")) == two);
  DONE(module.GetGlobal<const float>(here, "factor").status());
}

BOOST_FIXTURE_TEST_CASE(a_managed_variable_is_one_for_all_contexts, Fixture,
                        *NeedsDriver(12000,
                                     "libraries: a module's managed variable is of one context")) {
  const OwnContext other;
  const DeviceView<unsigned> mine = module.GetGlobal<unsigned>(here, "common").value();
  BOOST_TEST(ValuesOf(mine) == std::vector<unsigned>{5});
  Fill(mine, 6);
  const auto others = module.GetGlobal<unsigned>(Ref(other.get()), "common").value();
  BOOST_TEST(others.get() == mine.get());
  BOOST_TEST(ValuesOf(others) == std::vector<unsigned>{6});
}

BOOST_FIXTURE_TEST_CASE(variables_are_read_by_those_who_borrow_them, Fixture) {
  const DeviceView<unsigned> counters = module.GetGlobal<unsigned>(here, "counters").value();
  const auto borrowed = DeviceView<unsigned>::Borrow(counters.get(), counters.size());
  DONE(borrowed.status());
  BOOST_TEST((borrowed->context() == here));
  DONE(counters.Subview(1, 2).status());
  REFUSED(counters.Subview(3, 2).status(), kOutOfRange, "4");
}

BOOST_FIXTURE_TEST_CASE(a_variable_of_another_size_is_refused, Fixture) {
  const auto odd = module.GetGlobal<unsigned>(here, "odd").status();
  REFUSED(odd, kInvalidArgument, "it has 3 bytes");
  REFUSED(odd, kInvalidArgument, "elements of 4 bytes");
  BOOST_TEST(module.GetGlobal<unsigned char>(here, "odd")->size() == 3U);
  REFUSED(module.GetGlobal<unsigned>(here, "nothing").status(), kNotFound,
          "find variable \"nothing\" of \"code\"");
  BOOST_TEST(!module.GetGlobal<unsigned>(here, "store").ok());
}

BOOST_AUTO_TEST_CASE(what_does_not_compile_is_refused_with_the_compilers_log) {
  const OwnContext context;
  const CodeImage broken = Ptx(kBroken, "broken.ptx");
  JitReport report;
  for (const absl::Status& status :
       Failures(Module::Load(broken),
                Module::LoadIn(Ref(context.get()), broken, {}, &report).status())) {
    REFUSED(status, kInvalidArgument, "load PTX \"broken.ptx\"");
    BOOST_TEST((CodeOf(status) == CUDA_ERROR_INVALID_PTX));
    REFUSED(status, kInvalidArgument, "line 7");
  }
  BOOST_TEST(report.error_log.find("line 7") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ptx_of_a_newer_toolkit_is_refused_with_both_versions) {
  const OwnContext context;
  const CodeImage image = Ptx(kOfTheFuture, "later.ptx");
  for (const absl::Status& status :
       Failures(Module::Load(image), Module::LoadIn(Ref(context.get()), image).status())) {
    BOOST_TEST((CodeOf(status) == CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
    REFUSED(status, kUnimplemented, "99.0");
    REFUSED(status, kUnimplemented, "current version is");
    REFUSED(status, kUnimplemented, "update the driver, compile with an older toolkit, or give");
    REFUSED(status, kUnimplemented, "device 0 (compute capability ");
  }
}

BOOST_AUTO_TEST_CASE(ptx_of_a_newer_architecture_is_refused_with_the_devices,
                     *cuguest_test::OnlySim()) {
  const OwnContext context;
  const CodeImage image = Ptx(
      ".version 8.8\n.target sm_121\n.address_size 64\n.visible .entry k() { ret; }\n", "arch.ptx");
  for (const absl::Status& status :
       Failures(Module::Load(image), Module::LoadIn(Ref(context.get()), image).status())) {
    REFUSED(status, kInvalidArgument, "load PTX \"arch.ptx\"");
    REFUSED(status, kInvalidArgument, "device 0 (compute capability ");
  }
}

BOOST_AUTO_TEST_CASE(options_that_break_drivers_are_refused) {
  JitOptions no_registers;
  no_registers.max_registers = 0;
  JitOptions no_threads;
  no_threads.threads_per_block = 0;
  JitOptions too_optimal;
  too_optimal.optimization_level = 5;
  JitOptions both;
  both.threads_per_block = 64;
  both.target = CU_TARGET_COMPUTE_90;
  JitOptions too_split;
  too_split.split_compile = 4097;
  REFUSED(Module::Load(Ptx(), no_registers).status(), kInvalidArgument, "max_registers is 0");
  REFUSED(Module::Load(Ptx(), no_threads).status(), kInvalidArgument, "threads_per_block is 0");
  REFUSED(Module::Load(Ptx(), too_optimal).status(), kInvalidArgument, "level is 5");
  REFUSED(Module::Load(Ptx(), both).status(), kInvalidArgument, "cannot both be set");
  REFUSED(Module::Load(Ptx(), too_split).status(), kInvalidArgument, "split_compile is 4097");
  too_split.split_compile = 4096;
  DONE(Module::Load(Ptx(), too_split).status());
}

BOOST_AUTO_TEST_CASE(a_destroyed_context_is_refused) {
  OwnContext context;
  const ContextRef dead = Ref(context.get());
  const Module module = Module::Load(Ptx()).value();
  const Kernel store = module.GetKernel("store").value();
  RAW(cuCtxDestroy)(context.release());
  const auto check = [](const absl::Status& status) {
    BOOST_TEST((CodeOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED), status.ToString());
    BOOST_TEST((status.code() == StatusCode::kFailedPrecondition));
  };
  check(Module::LoadIn(dead, Ptx()).status());
  check(module.GetGlobal<unsigned>(dead, "counters").status());
  check(module.Preload(dead));
  check(store.FunctionIn(dead).status());
  check(store.Preload(dead));
  check(store.AttributesIn(dead).status());
  if (HasDriver(12040)) {
    check(store.IsLoaded(dead).status());
    check(store.ParametersIn(dead).status());
  }
  check(store.SetMaxDynamicSharedBytes(dead, 0));
  REFUSED(Module::LoadIn(ContextRef(), Ptx()).status(), kFailedPrecondition, "load PTX \"code\"");
  REFUSED(store.FunctionIn(ContextRef()).status(), kFailedPrecondition, "use kernel \"store\"");
}

// Code belongs to no context, so one that is dead on top of the stack is in nobody's way.
BOOST_AUTO_TEST_CASE(a_dead_context_may_be_current) {
  const OwnContext context;
  OwnContext doomed;
  const CUcontext dead = doomed.release();
  BOOST_TEST(RAW(cuCtxPushCurrent)(dead) == CUDA_SUCCESS);
  OnAnotherThread([dead] { BOOST_TEST(RAW(cuCtxDestroy)(dead) == CUDA_SUCCESS); });
  {
    Module module = Module::Load(Ptx()).value();
    DONE(module.KernelNames().status());
    DONE(module.GetKernel("bounded")->FunctionIn(Ref(context.get())).status());
    DONE(module.GetGlobal<unsigned>(Ref(context.get()), "counters").status());
    DONE(module.Release());
    DONE(Module::LoadIn(Ref(context.get()), Ptx()).status());
  }
  CUcontext popped = nullptr;
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  BOOST_TEST((popped == dead));
}

BOOST_AUTO_TEST_CASE(a_reset_context_gets_the_code_anew,
                     *NeedsDriver(12000, "cuCtxGetId, which tells one incarnation from the next")) {
  const Device device = Device::Borrow(0);
  const Module module = Module::Load(Ptx()).value();
  const Kernel store = module.GetKernel("store").value();
  Sim::RegisterKernel("store", &Store);
  PrimaryContext primary = PrimaryContext::Retain(device);
  const ContextRef before = primary.context();
  BOOST_TEST(Stored(store, before, 1) == 1U);
  Fill(*module.GetGlobal<unsigned>(before, "counters"), 9);
  BOOST_TEST(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  BOOST_TEST((CodeOf(store.FunctionIn(primary.get()).status()) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
  PrimaryContext again = PrimaryContext::Retain(device);
  const ContextRef after = again.context();
  BOOST_TEST_REQUIRE((after != before));
  BOOST_TEST(Stored(store, after, 2) == 2U);
  BOOST_TEST(ValuesOf(*module.GetGlobal<unsigned>(after, "counters")) ==
             (std::vector<unsigned>{1, 2, 3, 4}));
  BOOST_TEST((CodeOf(store.AttributesIn(before).status()) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
  static_cast<void>(primary.Release());
  DONE(ToStatus(again.Release()));
}

BOOST_AUTO_TEST_CASE(code_goes_to_every_device, *cuguest_test::NeedsDevices(2)) {
  const Module module = Module::Load(Ptx()).value();
  const Kernel store = module.GetKernel("store").value();
  Sim::RegisterKernel("store", &Store);
  const OwnContext contexts[] = {OwnContext(0), OwnContext(1)};
  for (const int device : {0, 1}) {
    const OwnContext& context = contexts[device];
    BOOST_TEST(Stored(store, Ref(context.get()), 5) == 5U);
    BOOST_TEST((module.GetGlobal<unsigned>(Ref(context.get()), "counters")->device() ==
                Device::Borrow(device)));
  }
}

BOOST_FIXTURE_TEST_CASE(threads_that_ask_at_once_find_the_same, Fixture) {
  constexpr int kThreads = 8;
  const OwnContext other;
  std::vector<std::thread> threads;
  std::vector<CUfunction> found(kThreads);
  std::vector<std::optional<Kernel>> kernels(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      kernels[i] = module.GetKernel("store").value();
      found[i] = kernels[i]->FunctionIn(i % 2 == 0 ? context.get() : other.get()).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    BOOST_TEST((kernels[i] == kernels[0]));
    BOOST_TEST((found[i] == found[i % 2]));
  }
  BOOST_TEST((found[0] != found[1]));
}

// More than one chunk of the table of functions.
BOOST_AUTO_TEST_CASE(many_kernels_are_all_found) {
  constexpr int kKernels = 100;
  std::string text = ".version 6.0\n.target sm_50\n.address_size 64\n";
  for (int i = 0; i < kKernels; ++i) {
    text += ".visible .entry kernel" + std::to_string(i) + "() { ret; }\n";
  }
  const OwnContext context;
  const Module module = Module::Load(Ptx(text)).value();
  std::vector<CUfunction> found;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < kKernels; ++i) {
      const auto kernel = module.GetKernel("kernel" + std::to_string(i));
      DONE(kernel.status());
      found.push_back(kernel->FunctionIn(context.get()).value());
    }
  }
  BOOST_TEST(std::equal(found.begin(), found.begin() + kKernels, found.begin() + kKernels));
  std::sort(found.begin(), found.end());
  BOOST_TEST((std::unique(found.begin(), found.end()) - found.begin() == kKernels));
  BOOST_TEST(module.KernelNames()->size() == std::size_t{kKernels});
  REFUSED(module.GetKernel("kernel").status(), kNotFound, "and 84 more");
}

BOOST_AUTO_TEST_SUITE(loading)

BOOST_FIXTURE_TEST_CASE(unloading_waits_for_no_kernel_to_be_left, Fixture) {
  std::optional<Kernel> store = module.GetKernel("store").value();
  const Kernel copy = *store;
  REFUSED(module.Release(), kFailedPrecondition, "2 Kernels of it are still there");
  BOOST_TEST(Stored(*store, here, 3) == 3U);
}

BOOST_FIXTURE_TEST_CASE(an_unloaded_module_is_empty, Fixture) {
  DONE(module.GetKernel("store")->FunctionIn(here).status());
  DONE(module.Release());
  BOOST_TEST(!module);
  BOOST_TEST(module.name() == "");
  DONE(module.Release());
  REFUSED(module.GetKernel("store").status(), kFailedPrecondition, "empty, or unloaded");
  REFUSED(module.KernelNames().status(), kFailedPrecondition, "empty, or unloaded");
  REFUSED(module.GetGlobal<int>(here, "counters").status(), kFailedPrecondition,
          "find variable \"counters\": the Module is empty");
  REFUSED(module.Preload(here), kFailedPrecondition, "empty, or unloaded");
}

BOOST_FIXTURE_TEST_CASE(a_kernel_keeps_its_code, Fixture) {
  const Kernel store = module.GetKernel("store").value();
  module = Module();
  BOOST_TEST(Stored(store, here, 4) == 4U);
}

BOOST_FIXTURE_TEST_CASE(a_moved_from_module_is_empty, Fixture) {
  const Module moved = std::move(module);
  BOOST_TEST(!module);
  BOOST_TEST(static_cast<bool>(moved));
  DONE(moved.GetKernel("store").status());
}

BOOST_AUTO_TEST_CASE(nothing_is_left_behind, *OnlySim()) {
  const auto before = Sim::Live();
  // An older driver has a module for each context.
  const auto check_one = [&] {
    if (HasDriver(12000)) BOOST_TEST(Sim::Live().libraries == before.libraries + 1);
  };
  {
    const OwnContext context;
    const OwnContext other;
    const Module module = Module::LoadIn(Ref(context.get()), Ptx()).value();
    const Kernel kernel = module.GetKernel("store").value();
    DONE(kernel.FunctionIn(other.get()).status());
    check_one();
    BOOST_TEST(Module::Load(Ptx(kBroken)).ok() == !HasDriver(12000));
    BOOST_TEST(!Module::LoadIn(Ref(context.get()), Ptx(kBroken)).ok());
    check_one();
  }
  BOOST_TEST((Sim::Live() == before));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(loading)

BOOST_AUTO_TEST_CASE(the_loading_mode_is_that_of_the_environment,
                     *NeedsDriver(11070, "cuModuleGetLoadingMode")) {
  const char* const asked = std::getenv("CUDA_MODULE_LOADING");
  const bool eager = asked != nullptr ? std::string(asked) == "EAGER" : !HasDriver(12020);
  BOOST_TEST((*cuguest::GetLoadingMode() ==
              (eager ? Module::LoadingMode::kEager : Module::LoadingMode::kLazy)));
}

BOOST_FIXTURE_TEST_CASE(preloaded_kernels_are_loaded, Fixture,
                        *NeedsDriver(12040, "cuFuncIsLoaded")) {
  DONE(module.Preload(here));
  const Names names = module.KernelNames().value();
  BOOST_TEST(names.size() == 3U);
  for (const std::string& name : names) {
    BOOST_TEST(module.GetKernel(name)->IsLoaded(here).value());
  }
}

BOOST_FIXTURE_TEST_CASE(a_warm_lookup_calls_no_driver, Fixture, *OnlySim()) {
  const Kernel store = module.GetKernel("store").value();
  DONE(store.FunctionIn(here).status());
  Sim::ResetCalls();
  DONE(store.FunctionIn(here).status());
  DONE(module.GetKernel("store").status());
  BOOST_TEST(Sim::TotalCalls() == 0U);
  DONE(store.FunctionIn(context.get()).status());
  BOOST_TEST(Sim::Calls(HasDriver(12000) ? "cuCtxGetId" : "cuCtxGetApiVersion") == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
