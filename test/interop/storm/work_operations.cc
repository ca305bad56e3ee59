// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory, copies, events and launches, by either API.

#include "cuguest/acquired_guard.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/peer_access.h"
#include "cuguest/runtime/device_buffer.h"
#include "cuguest/runtime/handle.h"
#include "test/interop/storm/operations.h"
#include "test/interop/storm/work.h"
#include "test/runtime/kernels.h"

namespace storm {

using cuguest::CaptureModeGuard;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::LaunchShape;
using cuguest::PeerAccess;
using cuguest::StreamRef;

Numbers PickNumbers(Worker& worker) {
  Numbers numbers(Lane::kCount);
  for (float& number : numbers) number = static_cast<float>(worker.random.Below(64));
  return numbers;
}

void Upload(const Numbers& numbers, const DeviceView<float>& to, const StreamRef& stream) {
  Require(cuguest::UploadAsync(to, numbers, stream));
}

void RequireContents(const DeviceView<float>& from, const Numbers& expected,
                     const StreamRef& stream) {
  Numbers found(expected.size());
  Require(cuguest::DownloadAsync(from, found, stream));
  Require(stream.Synchronize());
  Require(found == expected, "the numbers on the device");
}

void LaunchSaxpy(Worker& worker, float a, const DeviceView<float>& x, const DeviceView<float>& y,
                 const StreamRef& stream) {
  const LaunchShape shape{{1}, {Lane::kCount}};
  const auto count = static_cast<unsigned>(x.size());
  Require(
      cuguest::Launch(worker.world().saxpy(), shape, stream, count, a, DevicePtr(x), DevicePtr(y)));
}

// Relaxed, since the first launch in a context loads code.
void LaunchScale(float factor, const DeviceView<float>& values, const StreamRef& stream) {
  const ContextGuard guard(stream.context());
  RequireOk(guard);
  const CaptureModeGuard relaxed;
  RequireOk(relaxed);
  float* pointer = values.data();
  auto count = static_cast<unsigned>(values.size());
  void* arguments[] = {&pointer, &count, &factor};
  REQUIRE_CALL(cudaLaunchKernel(ScaleSymbol(), dim3{1, 1, 1}, dim3{Lane::kCount, 1, 1}, arguments,
                                0, cuguest::runtime::ToRuntime(stream.get())));
}

namespace {

// In stream 0, which does not wait for the lane's.
void CopyAndWait(Worker& worker) {
  Lane& lane = worker.LaneOf(worker.PickPlace());
  Require(lane.stream.ref().Synchronize());
  const Numbers numbers = PickNumbers(worker);
  Numbers found(numbers.size());
  Require(cuguest::Upload(lane.x.view(), numbers));
  Require(cuguest::Copy(lane.y.view(), lane.x.view()));
  Require(cuguest::Download(lane.y.view(), found));
  Require(found == numbers, "the numbers on the device");
}

// From one place to another, which may be on another device: the event keeps the order.
void CopyAcross(Worker& worker) {
  Lane& from = worker.LaneOf(worker.PickPlace());
  Lane& to = worker.LaneOf(worker.PickPlace());
  const Numbers numbers = PickNumbers(worker);
  Upload(numbers, from.x.view(), from.stream.ref());
  Require(from.event.Record(from.stream.ref()));
  Require(to.stream.ref().WaitFor(from.event));
  Require(cuguest::CopyAsync(to.y.view(), from.x.view(), to.stream.ref()));
  RequireContents(to.y.view(), numbers, to.stream.ref());
}

void Submit(Worker& worker) {
  Lane& lane = worker.LaneOf(worker.PickPlace());
  Require(cuguest::FillAsync(lane.x.view(), 1.0F, lane.stream.ref()));
  Require(lane.event.Record(lane.stream.ref()));
  Require(lane.event.IsDone().status());
}

void WaitForEvent(Worker& worker) {
  Lane& lane = worker.LaneOf(worker.PickPlace());
  Require(lane.event.Record(lane.stream.ref()));
  Require(lane.event.Synchronize());
  Require(Value(lane.stream.ref().IsDone()), "what was waited for is done");
}

void LaunchOfModule(Worker& worker) {
  Lane& lane = worker.LaneOf(worker.PickPlace());
  const Numbers x = PickNumbers(worker);
  Numbers y = PickNumbers(worker);
  const auto a = static_cast<float>(worker.random.Below(8));
  Upload(x, lane.x.view(), lane.stream.ref());
  Upload(y, lane.y.view(), lane.stream.ref());
  LaunchSaxpy(worker, a, lane.x.view(), lane.y.view(), lane.stream.ref());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
  RequireContents(lane.y.view(), y, lane.stream.ref());
}

// A kernel of one device reads the memory of another one, while other threads enable and disable
// that, too. Contexts of one device have no such access.
void LaunchAcross(Worker& worker) {
  Lane& from = worker.LaneOf(worker.PickPlace());
  Lane& to = worker.LaneOf(worker.PickPlace());
  const absl::StatusOr<PeerAccess> access = PeerAccess::Enable(to.context, from.context);
  if (absl::IsUnimplemented(access.status())) return;
  Require(access.status());
  const Numbers x = PickNumbers(worker);
  Numbers y = PickNumbers(worker);
  Upload(x, from.x.view(), from.stream.ref());
  Require(from.event.Record(from.stream.ref()));
  Require(to.stream.ref().WaitFor(from.event));
  Upload(y, to.y.view(), to.stream.ref());
  LaunchSaxpy(worker, 2, from.x.view(), to.y.view(), to.stream.ref());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += 2 * x[i];
  RequireContents(to.y.view(), y, to.stream.ref());
}

void LaunchOfRuntime(Worker& worker) {
  Lane& lane = worker.LaneOf(worker.PickPlace());
  Numbers x = PickNumbers(worker);
  Upload(x, lane.x.view(), lane.stream.ref());
  LaunchScale(3, lane.x.view(), lane.stream.ref());
  for (float& number : x) number *= 3;
  RequireContents(lane.x.view(), x, lane.stream.ref());
}

void AllocateByDriver(Worker& worker) {
  const ContextRef& context = worker.PickContext();
  auto buffer = Value(DeviceBuffer<float>::Allocate(context, Lane::kCount));
  Require(buffer.context() == context, "the memory is the context's");
  Require(buffer.Release());
}

void AllocateByRuntime(Worker& worker) {
  const ContextRef& context = worker.PickContext();
  auto buffer = Value(cuguest::runtime::AllocateBuffer<float>(context, Lane::kCount));
  Require(buffer.context() == context, "the memory is the context's");
  Require(worker.random.OneIn(2) ? cuguest::runtime::FreeBuffer(buffer) : buffer.Release());
}

void AllocateInOrder(Worker& worker) {
  Lane& lane = worker.LaneOf(worker.PickPlace());
  auto buffer = Value(DeviceBuffer<float>::AllocateAsync(lane.stream.ref(), Lane::kCount));
  Require(cuguest::FillAsync(buffer.view(), 2.0F, lane.stream.ref()));
  RequireContents(buffer.view(), Numbers(Lane::kCount, 2.0F), lane.stream.ref());
  Require(buffer.Release());
}

// The guest is given an address in a pool of the host's, which any device's stream may have
// allocated: it works where the memory is, and a kernel of the stream's device reads it.
void UsePool(Worker& worker) {
  const World& world = worker.world();
  const int device = worker.random.Below(world.devices());
  const Pool& pool = world.pools()[static_cast<std::size_t>(device)];
  Lane& lane = worker.LaneOf(worker.PickPlace());
  if (!pool.IsOpenTo(lane.y.view().device().get())) return;
  Lane& there = worker.LaneOf(world.PlaceOfPrimary(device));
  const Numbers x = PickNumbers(worker);
  Numbers y = PickNumbers(worker);
  const CUdeviceptr memory = pool.Allocate(Lane::kCount * sizeof(float), lane.stream.ref());
  Require(lane.event.Record(lane.stream.ref()));
  {
    const cuguest::AcquiredGuard guard(memory);
    RequireOk(guard);
    Device found = Device::Borrow(-1);
    REQUIRE_CALL(guard.acquired().GetDevice(&found));
    Require(found.get() == device, "what is acquired is on the pool's device");
  }
  const auto view = Value(DeviceView<float>::Borrow(memory, Lane::kCount));
  Require(there.stream.ref().WaitFor(lane.event));
  Upload(x, view, there.stream.ref());
  Require(there.event.Record(there.stream.ref()));
  Require(lane.stream.ref().WaitFor(there.event));
  Upload(y, lane.y.view(), lane.stream.ref());
  LaunchSaxpy(worker, 3, view, lane.y.view(), lane.stream.ref());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += 3 * x[i];
  Pool::Free(memory, lane.stream.ref());
  RequireContents(lane.y.view(), y, lane.stream.ref());
}

}  // namespace

Operations WorkOperations() {
  return {{"copy", 6, &CopyAndWait},
          {"copy across", 8, &CopyAcross},
          {"submit", 10, &Submit},
          {"event", 8, &WaitForEvent},
          {"launch, module", 10, &LaunchOfModule},
          {"launch, runtime", 10, &LaunchOfRuntime},
          {"launch across", 4, &LaunchAcross},
          {"memory, driver", 6, &AllocateByDriver},
          {"memory, runtime", 6, &AllocateByRuntime},
          {"memory, in order", 5, &AllocateInOrder},
          {"memory, pool", 5, &UsePool}};
}

}  // namespace storm
