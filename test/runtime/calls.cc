// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/runtime/calls.h"

#include "cuguest/runtime/function.h"
#include "kernels/saxpy.h"
#include "test/runtime/kernels.h"

namespace cuguest_runtime_test {
namespace {

namespace runtime = cuguest::runtime;
using cuguest::DeviceView;
using cuguest::Event;
using cuguest::Stream;

template <typename T>
T Get(absl::StatusOr<T> result) {
  BOOST_TEST_REQUIRE(result.ok(), result.status().ToString());
  return *std::move(result);
}

DeviceView<int> ViewOf(CUdeviceptr pointer) {
  return Get(DeviceView<int>::Borrow(pointer, Things::kCount));
}

Event RecordedIn(const Stream& stream) {
  Event event = Get(Event::Create(stream.context(), CU_EVENT_DEFAULT));
  BOOST_TEST(event.Record(stream.ref()).ok());
  return event;
}

}  // namespace

std::vector<Call> Joined(const std::vector<std::vector<Call>>& tables) {
  std::vector<Call> all;
  for (const std::vector<Call>& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

Things::Things() {
  const cuguest::PrimaryContext primary = RetainPrimary();
  ended = primary.context();
  SetStack({primary.get()});
  CUdeviceptr memory = 0;
  OK(RAW(cuMemAlloc)(&memory, kCount * sizeof(int)));
  ended_view = ViewOf(memory);
  ended_event = Get(Event::Create(ended));
  RT_OK(cudaFree(nullptr));  // the runtime looks, once, which context is the primary one
  RT_OK(cudaDeviceReset());  // which ends its incarnation, and the runtime's reference
  SetStack({});
  BOOST_TEST(!PrimaryIsActive());

  view = ViewOf(memories.device);
  managed_view = ViewOf(memories.managed);
  pool_view = ViewOf(memories.pool);
  stream = Get(Stream::Create(home.ref()));
  capturing = Get(Stream::Create(home.ref()));
  event = RecordedIn(stream);
  const Stream others = Get(Stream::Create(other.ref()));
  others_event = RecordedIn(others);

  home.Enter();
  OK(RAW(cuMemAlloc)(&freed, 4096));
  OK(RAW(cuMemFree)(freed));
  CUDA_ARRAY_DESCRIPTOR shape = {};
  shape.Width = 8;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  OK(RAW(cuArrayCreate)(&array, &shape));
  SetStack({});
  OK(RAW(cuLibraryLoadData)(&library, cuguest_kernels::saxpy_fatbin, nullptr, nullptr, 0, nullptr,
                            nullptr, 0));
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "saxpy"));
  function = Get(runtime::FunctionOf(kernel, home.ref()));
  Get(runtime::FunctionOf(ScaleSymbol(), home.ref()));  // what it loads stays
  OK(RAW(cuStreamBeginCapture)(capturing.get(), CU_STREAM_CAPTURE_MODE_RELAXED));
}

Things::~Things() {
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(capturing.get(), &graph));
  if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  OK(RAW(cuArrayDestroy)(array));
  OK(RAW(cuLibraryUnload)(library));
}

const std::vector<Call>& Calls() {
  static const auto& calls =
      *new std::vector<Call>(Joined({BridgeCalls(), MemoryCalls(), StreamCalls()}));
  return calls;
}

void InEveryState(const Things& things,
                  const std::function<void(const char* name, const SetUp& set_stack)>& body) {
  const CUcontext home = things.home.get();
  const CUcontext other = things.other.get();
  const auto in = [&](const char* name, const std::vector<CUcontext>& stack) {
    const SetUp set_stack = [&stack] { SetStack(stack); };
    BOOST_TEST_CONTEXT(name) { body(name, set_stack); }
    SetStack({});
  };
  EndPrimary();
  in("nothing current, the primary inactive", {});
  in("the context of the things current", {home});
  in("another context current", {other});
  const cuguest::PrimaryContext primary = RetainPrimary();
  in("nothing current, the primary active", {});
  in("the primary current", {primary.get()});
  in("three contexts", {primary.get(), home, other});
}

}  // namespace cuguest_runtime_test
