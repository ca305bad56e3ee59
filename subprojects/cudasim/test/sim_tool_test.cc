// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a tool is told (cudasim/tool.h), and the library that CUDA_INJECTION64_PATH names.

#include "cudasim/tool.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "test/facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(sim_tool)

using namespace cudasim_facts;
using cudasim_test::NeedsDevices;
using cudasim_test::OnlySim;

namespace {

struct Seen {
  std::string what;  // "> cuCtxPushCurrent", "< cuCtxPushCurrent", "+", "-"
  std::uint64_t context;
  int result;

  bool operator==(const Seen& other) const {
    return what == other.what && context == other.context && result == other.result;
  }
};

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << seen.what << " " << seen.context << " " << seen.result;
}

std::vector<Seen> all_seen;
std::vector<cudasimContext> contexts;
const void* pushed = nullptr;

void See(const char* mark, const cudasimCall* call) {
  all_seen.push_back({mark + std::string(call->name), call->context, call->result});
  if (std::string(call->symbol) != "cuCtxPushCurrent_v2" || call->argument_count != 1) return;
  pushed = *static_cast<const CUcontext*>(call->arguments[0]);
}

const cudasimSubscriber kSubscriber = {
    CUDASIM_TOOL_VERSION,
    [](const cudasimCall* call) { See("> ", call); },
    [](const cudasimCall* call) { See("< ", call); },
    [](const cudasimContext* context) {
      all_seen.push_back({"+", context->id, 0});
      contexts.push_back(*context);
    },
    [](const cudasimContext* context) {
      all_seen.push_back({"-", context->id, 0});
    },
};

CUresult Subscribe(const cudasimSubscriber* subscriber) {
  static void* const function = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cudasimSubscribe");
  return reinterpret_cast<decltype(&cudasimSubscribe)>(function)(subscriber);
}

// What is seen while `body` runs.
template <typename Body>
std::vector<Seen> Watch(Body body) {
  all_seen.clear();
  BOOST_REQUIRE(Subscribe(&kSubscriber) == CUDA_SUCCESS);
  body();
  Subscribe(nullptr);
  return all_seen;
}

}  // namespace

BOOST_AUTO_TEST_CASE(calls_show_context_before_and_after, *OnlySim()) {
  const OwnContext a;
  SetStack({});
  const std::uint64_t id = IdOf(a.get());
  const std::vector<Seen> seen = Watch([&] {
    RAW(cuCtxPushCurrent)(a.get());
    RAW(cuCtxPopCurrent)(nullptr);
    RAW(cuCtxSynchronize)();
  });
  const std::vector<Seen> expected = {
      {"> cuCtxPushCurrent", 0, 0}, {"< cuCtxPushCurrent", id, 0},
      {"> cuCtxPopCurrent", id, 0}, {"< cuCtxPopCurrent", 0, 0},
      {"> cuCtxSynchronize", 0, 0}, {"< cuCtxSynchronize", 0, CUDA_ERROR_INVALID_CONTEXT}};
  BOOST_TEST(seen == expected, boost::test_tools::per_element());
  BOOST_TEST(pushed == a.get());
}

BOOST_AUTO_TEST_CASE(contexts_are_announced_inside_calls, *OnlySim() * NeedsDevices(2)) {
  SetStack({});
  contexts.clear();
  std::uint64_t id = 0;
  const std::vector<Seen> seen = Watch([&] {
    CUcontext context = nullptr;
    RAW(cuCtxCreate)(&context, nullptr, 0, 1);
    id = contexts.at(0).id;
    RAW(cuCtxDestroy)(context);
  });
  const std::vector<Seen> expected = {
      {"> cuCtxCreate", 0, 0},   {"+", id, 0}, {"< cuCtxCreate", id, 0},
      {"> cuCtxDestroy", id, 0}, {"-", id, 0}, {"< cuCtxDestroy", 0, 0}};
  BOOST_TEST(seen == expected, boost::test_tools::per_element());
  BOOST_TEST(contexts.at(0).kind == cudasimUserContext);
  BOOST_TEST(contexts.at(0).device == 1);
}

BOOST_AUTO_TEST_CASE(runtime_calls_enclose_the_drivers, *OnlySim() * NeedsDevices(2)) {
  int count = 0;
  BOOST_REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);  // opens the driver
  SetStack({});
  contexts.clear();
  const std::vector<Seen> seen = Watch([] { BOOST_TEST(cudaSetDevice(1) == cudaSuccess); });
  BOOST_REQUIRE(!seen.empty());
  const std::uint64_t id = contexts.at(0).id;
  BOOST_TEST(seen.front() == (Seen{"> cudaSetDevice", 0, 0}));
  BOOST_TEST(seen.back() == (Seen{"< cudaSetDevice", id, 0}));
  BOOST_TEST(std::count(seen.begin(), seen.end(), Seen{"> cuDevicePrimaryCtxRetain", 0, 0}) == 1);
  BOOST_TEST(contexts.at(0).kind == cudasimPrimaryContext);
  SetStack({});
  RAW(cuDevicePrimaryCtxReset)(1);
}

CHILD(subscribes_before_the_runtime) {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(Subscribe(&kSubscriber) == CUDA_SUCCESS);
  CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
  CHECK(all_seen.front() == (Seen{"> cudaSetDevice", 0, 0}));
  CHECK(all_seen.back() == (Seen{"< cudaSetDevice", 0, cudaErrorInvalidDevice}));
  return 0;
}

// The driver is loaded, but not initialised.
CHILD(subscribes_before_cuinit) {
  CHECK(Subscribe(&kSubscriber) == CUDA_SUCCESS);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(all_seen.front() == (Seen{"> cudaSetDevice", 0, 0}));
  CHECK(all_seen.back().what == "< cudaSetDevice");
  return 0;
}

BOOST_AUTO_TEST_CASE(runtimes_first_call_is_told, *OnlySim()) {
  REQUIRE_CHILD_PASSES("subscribes_before_the_runtime");
  REQUIRE_CHILD_PASSES("subscribes_before_cuinit");
}

bool IsDriverLoaded() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr; }

CHILD(asks_for_the_version) {
  int version = 0;
  CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess);
  CHECK(!IsDriverLoaded());
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(IsDriverLoaded());
  return 0;
}

BOOST_AUTO_TEST_CASE(call_without_driver_loads_none, *OnlySim()) {
  REQUIRE_CHILD_PASSES("asks_for_the_version");
}

BOOST_AUTO_TEST_CASE(one_subscriber_at_a_time, *OnlySim()) {
  BOOST_TEST(Subscribe(&kSubscriber) == CUDA_SUCCESS);
  const cudasimSubscriber rival = kSubscriber;
  BOOST_TEST(Subscribe(&rival) == CUDA_ERROR_ALREADY_ACQUIRED);
  BOOST_TEST(Subscribe(nullptr) == CUDA_SUCCESS);
  cudasimSubscriber newer = kSubscriber;
  ++newer.version;
  BOOST_TEST(Subscribe(&newer) == CUDA_ERROR_INVALID_VALUE);
  BOOST_TEST(Watch([] {}).empty());
}

CHILD(initializes_twice) {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  return 0;
}

BOOST_AUTO_TEST_CASE(injected_library_is_called_once, *OnlySim()) {
  const char* library = std::getenv("CUDASIM_TEST_INJECTED");
  BOOST_REQUIRE(library != nullptr);
  const auto run = [](const std::string& path) {
    return cudasim_test::RunSelf({"--child=initializes_twice"}, {"CUDA_INJECTION64_PATH=" + path});
  };
  const cudasim_test::Ended injected = run(library);
  BOOST_TEST(injected.code == 0);
  BOOST_TEST(injected.output == "injected: cuInit is 3\n");
  BOOST_TEST(run("/no/such/library.so").output == "");
  BOOST_TEST(run("/no/such/library.so").code == 0);
  BOOST_TEST(run("libdl.so.2").output == "");  // without InitializeInjection
}

BOOST_AUTO_TEST_SUITE_END()
