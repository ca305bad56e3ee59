// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Captures that stay open over many steps, on a stream of their own, while this thread and
// all others go on.

#include <utility>

#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/copy.h"
#include "test/interop/storm/operations.h"
#include "test/interop/storm/work.h"
#include "test/support/raw_driver.h"

namespace storm {
namespace {

using cuguest::CaptureModeGuard;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::Stream;
using cuguest::StreamRef;

constexpr int kMaxNodes = 10;  // the numbers stay exact

// An executable graph of a context, for a scope.
class Executable {
 public:
  Executable(CUgraph graph, const ContextRef& context) : guard_(context) {
    RequireOk(relaxed_);
    RequireOk(guard_);
    REQUIRE_CALL(RAW(cuGraphInstantiate)(&exec_, graph, 0));
  }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable() { RAW(cuGraphExecDestroy)(exec_); }
  void Launch(const StreamRef& stream) { REQUIRE_CALL(RAW(cuGraphLaunch)(exec_, stream.get())); }

 private:
  const CaptureModeGuard relaxed_;
  const ContextGuard guard_;
  CUgraphExec exec_ = nullptr;
};

void FillBoth(Worker& worker) {
  Capture& capture = *worker.capture;
  capture.expected_x = static_cast<float>(1 + worker.random.Below(3));
  capture.expected_y = static_cast<float>(worker.random.Below(3));
  Require(cuguest::FillAsync(capture.x.view(), capture.expected_x, capture.stream.ref()));
  Require(cuguest::FillAsync(capture.y.view(), capture.expected_y, capture.stream.ref()));
  capture.nodes += 2;
}

void Begin(Worker& worker) {
  const int place = worker.random.Below(worker.world().places());
  const ContextRef& context = worker.ContextOf(place);
  worker.capture.emplace(Capture{place, Value(Stream::Create(context)),
                                 Value(DeviceBuffer<float>::Allocate(context, Lane::kCount)),
                                 Value(DeviceBuffer<float>::Allocate(context, Lane::kCount))});
  const auto mode = static_cast<CUstreamCaptureMode>(worker.random.Below(3));
  REQUIRE_CALL(RAW(cuStreamBeginCapture)(worker.capture->stream.get(), mode));
  FillBoth(worker);
}

void Extend(Worker& worker) {
  Capture& capture = *worker.capture;
  const StreamRef& stream = capture.stream.ref();
  switch (worker.random.Below(4)) {
    case 0:
      LaunchSaxpy(worker, 2, capture.x.view(), capture.y.view(), stream);
      capture.expected_y += 2 * capture.expected_x;
      break;
    case 1:
      LaunchScale(2, capture.x.view(), stream);
      capture.expected_x *= 2;
      break;
    case 2:
      SubmitSaxpy(worker, 1, capture.x.view(), capture.y.view(), stream);
      capture.expected_y += capture.expected_x;
      break;
    default:
      Require(cuguest::CopyAsync(capture.x.view(), capture.y.view(), stream));
      capture.expected_x = capture.expected_y;
  }
  ++capture.nodes;
}

// The next thing to do with the thread's capture.
void Advance(Worker& worker) {
  if (!worker.capture.has_value()) return Begin(worker);
  if (worker.capture->nodes < kMaxNodes && !worker.random.OneIn(5)) return Extend(worker);
  worker.EndCapture();
}

}  // namespace

void Worker::EndCapture() {
  if (!capture.has_value()) return;
  Capture ended = *std::exchange(capture, std::nullopt);
  CUgraph graph = nullptr;
  REQUIRE_CALL(RAW(cuStreamEndCapture)(ended.stream.get(), &graph));
  Require(graph != nullptr, "the capture gives a graph");
  {
    Executable executable(graph, ended.stream.context());
    executable.Launch(ended.stream.ref());
    executable.Launch(ended.stream.ref());
    RequireContents(ended.x.view(), Numbers(Lane::kCount, ended.expected_x), ended.stream.ref());
    RequireContents(ended.y.view(), Numbers(Lane::kCount, ended.expected_y), ended.stream.ref());
  }
  REQUIRE_CALL(RAW(cuGraphDestroy)(graph));
}

Operations CaptureOperations() { return {{"capture", 40, &Advance}}; }

}  // namespace storm
