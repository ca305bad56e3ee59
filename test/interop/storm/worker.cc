// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/worker.h"

#include <algorithm>
#include <utility>

#include "cuguest/capture.h"
#include "cuguest/driver.h"
#include "test/support/raw_driver.h"

namespace storm {
namespace {

using cuguest::CaptureModeGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::Event;
using cuguest::Incident;
using cuguest::Stream;
using cuguest::testing::StackProbe;

thread_local std::vector<Incident> t_incidents;

void VerifyThreadState() {
  const cudaError_t error = cudaPeekAtLastError();
  if (error != cudaSuccess) {
    throw Failure{std::string("the runtime's last error was left: ") + cudaGetErrorName(error)};
  }
  const CaptureModeGuard mode(CU_STREAM_CAPTURE_MODE_GLOBAL);
  RequireOk(mode);
  if (mode.caller() != CU_STREAM_CAPTURE_MODE_GLOBAL) {
    throw Failure{"the thread's capture mode was left changed"};
  }
}

}  // namespace

void RecordIncident(const Incident& incident, void*) { t_incidents.push_back(incident); }
std::vector<Incident> TakeIncidents() { return std::exchange(t_incidents, {}); }

Lane::Lane(const ContextRef& where)
    : context(where),
      stream(Value(Stream::Create(where))),
      event(Value(Event::Create(where))),
      x(Value(DeviceBuffer<float>::Allocate(where, kCount))),
      y(Value(DeviceBuffer<float>::Allocate(where, kCount))) {}

// After a failure; otherwise there is nothing left.
Worker::~Worker() {
  capture.reset();
  lanes_.clear();
  CUcontext popped = nullptr;
  while (RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS) {
  }
  if (has_own()) RAW(cuCtxDestroy)(own_.get());
  t_incidents.clear();
}

void Worker::Clear() {
  expected_.clear();
  EndCapture();
  while (!stack.empty()) {
    CUcontext popped = nullptr;
    REQUIRE_CALL(RAW(cuCtxPopCurrent)(&popped));
    stack.pop_back();
  }
  if (has_own()) EndOwn();
  lanes_.clear();
  Verify();
}

int Worker::PickPlace() {
  if (has_own() && random.OneIn(8)) return kOwn;
  return random.Below(world_->places());
}

const ContextRef& Worker::ContextOf(int place) const {
  return place == kOwn ? own_ : world_->place(place);
}

Lane& Worker::LaneOf(int place) {
  std::unique_ptr<Lane>& lane = lanes_[place];
  if (lane == nullptr) lane = std::make_unique<Lane>(ContextOf(place));
  return *lane;
}

bool Worker::IsInStack(CUcontext context) const {
  return std::any_of(stack.begin(), stack.end(),
                     [&](const StackProbe::Entry& entry) { return entry.context == context; });
}

// As a host does it.
void Worker::MakeOwn() {
  const int device = random.Below(world_->devices());
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  REQUIRE_CALL(cuguest::Driver::Get().value()->CtxCreate(&context, 0, device));
  REQUIRE_CALL(RAW(cuCtxPopCurrent)(&popped));
  own_ = ContextRef::Borrow(context);
  RequireOk(own_);
}

void Worker::EndOwn() {
  lanes_.erase(kOwn);
  const ContextRef own = std::exchange(own_, ContextRef());
  world_->Forget(own);
  REQUIRE_CALL(RAW(cuCtxDestroy)(own.get()));
}

void Worker::LeavePrimaries() {
  EndCapture();
  for (int place = world_->contexts(); place < world_->places(); ++place) lanes_.erase(place);
}

void Worker::RefreshPrimaries() {
  for (StackProbe::Entry& entry : stack) {
    for (int device = 0; device < world_->devices(); ++device) {
      const ContextRef& primary = world_->primary(device);
      if (entry.context == primary.get()) entry.id = primary.id();
    }
  }
}

void Worker::Verify() {
  VerifyStack();
  VerifyThreadState();
  VerifyIncidents();
  if (capture.has_value() &&
      capture->stream.ref().capture_status() != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    throw Failure{"the thread's capture was invalidated"};
  }
}

void Worker::VerifyStack() const {
  const StackProbe found = StackProbe::Take();
  const auto& primaries = found.primaries();
  Require(std::all_of(primaries.begin(), primaries.end(), [](auto& p) { return p.active; }),
          "every primary context is active");
  if (found.stack() == stack && !found.cut()) return;
  std::string expected;
  for (const StackProbe::Entry& entry : stack) expected += "[" + NameOf(entry.context) + "] ";
  throw Failure{"the stack is not what it should be\n  expected " +
                (stack.empty() ? "(empty)" : expected) + "\n  found    " +
                found.Draw([this](CUcontext context) { return NameOf(context); })};
}

void Worker::VerifyIncidents() {
  const std::vector<Incident> found = TakeIncidents();
  bool as_expected = found.size() == expected_.size();
  for (std::size_t i = 0; as_expected && i < found.size(); ++i) {
    as_expected = !expected_[i].has_value() || *expected_[i] == found[i].kind;
  }
  if (as_expected) {
    incidents += found.size();
    return;
  }
  std::string text = "the incidents are not those that were caused\n  expected";
  for (const auto& kind : expected_) text += std::string(" ") + (kind ? Name(*kind) : "any");
  text += "\n  found   ";
  for (const Incident& incident : found) {
    text += std::string(" ") + Name(incident.kind) + " (" + Name(incident.repair) + ", " +
            incident.file + ":" + std::to_string(incident.line) + ")";
  }
  throw Failure{text};
}

std::string Worker::NameOf(CUcontext context) const {
  return context == own_.get() ? "own" : world_->NameOf(context);
}

}  // namespace storm
