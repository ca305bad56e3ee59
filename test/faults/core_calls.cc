// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of the headers of tiers 1 and 2: guards and scopes, devices, primary, shared and green
// contexts, what acquires a context, captures, values per context.

#include <cstdlib>
#include <string>
#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/capture.h"
#include "cuguest/compatibility.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/free_memory.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/driver_log.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/primary_keeper.h"
#include "cuguest/relaxed.h"
#include "cuguest/shared_context.h"
#include "cuguest/sharing.h"
#include "cuguest/sm_split.h"
#include "cuguest/status.h"
#include "cuguest/thread_home.h"
#include "test/faults/operations.h"
#include "test/support/raw_driver.h"

namespace cuguest_faults {
namespace {

using namespace cuguest_runtime_test;
using absl::StatusCode;
using cuguest::AcquiredGuard;
using cuguest::CaptureModeGuard;
using cuguest::CaptureStatusOf;
using cuguest::ContextGuard;
using cuguest::ContextScope;
using cuguest::Driver;
using cuguest::DriverLog;
using cuguest::ExactGuard;
using cuguest::GreenContext;
using cuguest::GuardMode;
using cuguest::HostScope;
using cuguest::HousekeepingIsSafe;
using cuguest::IfInactive;
using cuguest::NoContextGuard;
using cuguest::ObjectDriver;
using cuguest::PerContext;
using cuguest::PrimaryContext;
using cuguest::Relaxed;
using cuguest::SharedContext;
using cuguest::SmCount;
using cuguest::SmCountOf;
using cuguest::SmSplit;
using cuguest::ToStatus;

constexpr auto kOk = StatusCode::kOk;
constexpr auto kRefused = StatusCode::kInvalidArgument;
constexpr auto kOver = StatusCode::kFailedPrecondition;
constexpr auto kDepends = std::nullopt;

// The first failure; all of them were done.
absl::Status FirstOf(std::initializer_list<CUresult> codes) {
  for (const CUresult code : codes) {
    if (code != CUDA_SUCCESS) return ToStatus(code, "do one of several things");
  }
  return absl::OkStatus();
}

template <GuardMode kMode>
absl::Status GuardByHandle(const Things& t) {
  ContextGuard guard(t.home.get(), kMode);
  return EnterAndLeave(guard);
}

template <GuardMode kMode>
absl::Status GuardThatMoves(const Things& t) {
  ContextGuard guard(kMode);
  const CUresult to_home = guard.MoveTo(t.home.get());
  const CUresult to_other = guard.MoveTo(t.other.ref());
  return FirstOf({to_home, to_other, guard.Leave()});
}

std::vector<Call> Guards() {
  return {
      {"ContextGuard ContextGuard::Reassert ContextGuard::Leave", kOk,
       GuardByHandle<GuardMode::kElide>},
      {"ContextGuard: always push", kOk, GuardByHandle<GuardMode::kAlwaysPush>},
      {"ExactGuard ExactGuard::Reassert ExactGuard::Leave", kOk,
       [](const Things& t) {
         ExactGuard guard(t.home.get());
         return EnterAndLeave(guard);
       }},
      {"ExactGuard: by reference", kOk,
       [](const Things& t) {
         ExactGuard guard(t.other.ref());
         return EnterAndLeave(guard);
       }},
      {"ContextGuard: out of turn", kOk,
       [](const Things& t) {
         ContextGuard outer(t.home.get());
         ContextGuard inner(t.other.ref());
         if (!outer.ok() || !inner.ok()) return ToStatus(outer.ok() ? inner : outer);
         const CUresult out_of_turn = outer.Leave();
         return FirstOf(
             {out_of_turn == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : out_of_turn, inner.Leave()});
       }},
      {"ContextGuard: by reference", kOk,
       [](const Things& t) {
         ContextGuard guard(t.home.ref());
         return EnterAndLeave(guard);
       }},
      {"ContextGuard: a destroyed context", kOver,
       [](const Things& t) {
         ContextGuard guard(t.ended);
         return EnterAndLeave(guard);
       }},
      {"ContextGuard: null", kOver,
       [](const Things&) {
         ContextGuard guard(CUcontext{});
         return EnterAndLeave(guard);
       }},
      {"ContextGuard::MoveTo", kOk, GuardThatMoves<GuardMode::kElide>},
      {"ContextGuard::MoveTo: always push", kOk, GuardThatMoves<GuardMode::kAlwaysPush>},
      {"ContextScope ContextScope::Enter ContextScope::MoveTo ContextScope::Reassert "
       "ContextScope::Leave",
       kOk,
       [](const Things& t) {
         ContextScope scope;
         const CUresult entered = scope.Enter(t.home.get());
         if (entered != CUDA_SUCCESS) return FirstOf({entered});
         ContextScope moved(std::move(scope));
         const CUresult to_other = moved.MoveTo(t.other.ref());
         const CUresult reasserted = moved.Reassert();
         return FirstOf({to_other, reasserted, moved.Leave()});
       }},
      {"NoContextGuard NoContextGuard::Leave", kOk,
       [](const Things&) {
         NoContextGuard none;
         return none.ok() ? FirstOf({none.Leave()}) : ToStatus(none);
       }},
      {"HostScope HostScope::Leave", kOk,
       [](const Things& t) {
         ContextGuard outer(t.home.ref());
         ContextGuard inner(t.other.get());
         if (!outer.ok() || !inner.ok()) return ToStatus(outer.ok() ? inner : outer);
         HostScope host;
         const CUresult left = host.result();
         static_cast<void>(host.Leave());
         const CUresult back = inner.Reassert();
         const CUresult restored = inner.Leave();
         return FirstOf({left, back, restored, outer.Leave()});
       }},
      {"CaptureModeGuard CaptureModeGuard::Reassert CaptureModeGuard::Leave", kOk,
       [](const Things&) {
         CaptureModeGuard relaxed;
         return EnterAndLeave(relaxed);
       }},
      {"Relaxed Relaxed::Reassert Relaxed::Leave", kOk,
       [](const Things& t) {
         Relaxed<ContextGuard> guard(t.home.ref());
         return EnterAndLeave(guard);
       }},
      {"Relaxed: a device", kOk,
       [](const Things&) {
         Relaxed<AcquiredGuard> guard(First(), IfInactive::kCreate);
         return EnterAndLeave(guard);
       }},
      {"CaptureStatusOf", kOk,
       [](const Things& t) {
         return Holds(CaptureStatusOf(t.stream.get()) == CU_STREAM_CAPTURE_STATUS_NONE &&
                      CaptureStatusOf(t.capturing.get()) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
       }},
      {"HousekeepingIsSafe", kOk,
       [](const Things& t) { return Holds(HousekeepingIsSafe(t.stream.get())); }},
  };
}

std::vector<Call> Names() {
  return {
      {"ContextRef ContextRef::Borrow", kOk,
       [](const Things& t) { return ToStatus(ContextRef::Borrow(t.home.get())); }},
      {"ContextRef::Current", kDepends,
       [](const Things&) { return ToStatus(ContextRef::Current()); }},
      {"ContextRef::Check ContextRef::IsAlive", kOk,
       [](const Things& t) { return FirstOf({t.home.ref().Check()}); }},
      {"ContextRef::Check: a destroyed context", kOver,
       [](const Things& t) { return FirstOf({t.ended.Check()}); }},
      {"Device Device::Borrow CountDevices", kOk,
       [](const Things&) { return cuguest::CountDevices(); }},
      {"DeviceAt", kOk, [](const Things&) { return DeviceAt(cuguest::Device::Ordinal{0}); }},
      {"DeviceAt: by UUID", kOk,
       [](const Things&) {
         const absl::StatusOr<cuguest::Device::Uuid> uuid = UuidOf(First());
         return uuid.ok() ? DeviceAt(*uuid) : uuid.status();
       }},
      {"DeviceAt: no UUID", StatusCode::kNotFound,
       [](const Things&) { return DeviceAt(cuguest::Device::Uuid()); }},
      {"DeviceAt: by PCI id", kOk,
       [](const Things&) {
         const absl::StatusOr<std::string> id = PciBusIdOf(First());
         return id.ok() ? cuguest::DeviceAt(*id) : id.status();
       }},
      {"DeviceAt: none", StatusCode::kNotFound,
       [](const Things&) { return DeviceAt(cuguest::Device::Ordinal{100}); }},
      {"CurrentDevice", kDepends, [](const Things&) { return cuguest::CurrentDevice(); }},
      {"NameOf", kOk, [](const Things&) { return NameOf(First()); }},
      {"PciBusIdOf", kOk, [](const Things&) { return PciBusIdOf(First()); }},
      {"UuidOf", kOk, [](const Things&) { return UuidOf(First()); }},
      {"QueryVersions", kOk, [](const Things&) { return cuguest::QueryVersions().problem; }},
      {"Driver::Get Driver::GetInitialized Driver::Require", kOk,
       [](const Things&) {
         const auto driver = Driver::GetInitialized();
         return driver.ok() ? (*driver)->Require(&Driver::CtxGetCurrent) : driver.status();
       }},
      {"Driver::Find", kOk,
       [](const Things&) {
         return (*Driver::Get())->Find<CUresult(CUDAAPI*)(int*)>("cuDriverGetVersion", 2020);
       }},
      {"Driver::Load", kOk,
       [](const Things&) {
         Driver other;
         return Driver::Load("libcuda.so.1", &other);
       }},
      {"ObjectDriver::Get ObjectDriver::GetInitialized ObjectDriver::Require", kOk,
       [](const Things&) {
         const auto driver = ObjectDriver::GetInitialized();
         return driver.ok() ? (*driver)->Require(&ObjectDriver::MemAllocAsync) : driver.status();
       }},
      {"ObjectDriver::Load", kOk,
       [](const Things&) {
         ObjectDriver other;
         return ObjectDriver::Load(**Driver::Get(), &other);
       }},
      {"Driver::IsInitialized", kOk, [](const Things&) { return Holds(Driver::IsInitialized()); }},
      {"GetFreeMemory", kOk,
       [](const Things&) {
         return ToStatus(cuguest::GetFreeMemory(First(), IfInactive::kCreate).error());
       }},
      {"SmCountOf: a device", kOk, [](const Things&) { return SmCountOf(First()); }},
      {"SmCountOf: a context", kOk, [](const Things& t) { return SmCountOf(t.home.ref()); }},
  };
}

// `then` of a context that was made, which somebody has to destroy if the driver refuses to.
Outcome OfShared(SharedContext shared,
                 const std::function<absl::Status(SharedContext&)>& then = nullptr) {
  if (!shared.ok()) return ToStatus(shared);
  const CUcontext context = shared.get();
  const absl::Status status = then ? then(shared) : absl::OkStatus();
  Outcome outcome = Together(status, std::move(shared));
  outcome.end_context = [context] { OK(RAW(cuCtxDestroy)(context)); };
  return outcome;
}
Outcome OfGreen(absl::StatusOr<GreenContext> green,
                const std::function<absl::Status(GreenContext&)>& then = nullptr) {
  if (!green.ok()) return green.status();
  const CUgreenCtx context = green->green();
  const absl::Status status = then ? then(*green) : absl::OkStatus();
  Outcome outcome = Together(status, *std::move(green));
  outcome.end_context = [context] { OK(RAW(cuGreenCtxDestroy)(context)); };
  return outcome;
}

std::vector<Call> Owners() {
  return {
      {"PrimaryContext PrimaryContext::Retain", kOk,
       [](const Things&) { return PrimaryContext::Retain(First()); }},
      {"PrimaryContext::RetainIfActive", kDepends,
       [](const Things&) { return PrimaryContext::RetainIfActive(First()); }},
      {"PrimaryContext::Query", kOk, [](const Things&) { return PrimaryContext::Query(First()); }},
      {"PrimaryContext::WasReset PrimaryContext::Release", kOk,
       [](const Things&) {
         PrimaryContext primary = PrimaryContext::Retain(First());
         if (!primary.ok()) return Outcome(cuguest::ToStatus(primary));
         const bool was_reset = primary.WasReset();
         const absl::Status released = ToStatus(primary.Release());
         return Together(released.ok() ? Holds(!was_reset) : released, std::move(primary));
       }},
      {"SharedContext SharedContext::Create", kOk,
       [](const Things&) { return OfShared(SharedContext::Create(First())); }},
      {"SharedContext::Create: unknown flags", kRefused,
       [](const Things&) { return SharedContext::Create(First(), 1u << 31); }},
      {"SharedContext::Attach", kOk,
       [](const Things& t) { return SharedContext::Attach(t.home.get()); }},
      {"SharedContext::Attach: a primary context", kOk,
       [](const Things&) -> Outcome {
         PrimaryContext primary = PrimaryContext::Retain(First());
         if (!primary.ok()) return cuguest::ToStatus(primary);
         Outcome outcome = SharedContext::Attach(primary.context());
         return Together(std::move(outcome), std::move(primary));
       }},
      {"SharedContext::Attach: a destroyed context", kOver,
       [](const Things& t) { return SharedContext::Attach(t.ended); }},
      {"SharedContext::Release: the last holder", kOk,
       [](const Things&) {
         return OfShared(SharedContext::Create(First()),
                         [](SharedContext& shared) { return ToStatus(shared.Release()); });
       }},
      {"SharedContext::Release", kOk,
       [](const Things& t) {
         SharedContext shared = SharedContext::Attach(t.home.get());
         if (!shared.ok()) return Outcome(cuguest::ToStatus(shared));
         const absl::Status detached = ToStatus(shared.Release());
         return Together(detached, std::move(shared));
       }},
      {"CheckSharing", kOk, [](const Things&) { return cuguest::CheckSharing(); }},
      {"Part SmSplit::Of", Since(12040, kOk),
       [](const Things&) { return SmSplit::Of(First(), SmCount{8}, 2); }},
      {"SmSplit::OfSizes", Since(12040, kOk),
       [](const Things&) {
         return SmSplit::OfSizes(First(), {SmCount{8}, SmCount{16}});
       }},
      {"GreenContext GreenContext::Create", Since(12040, kOk),
       [](const Things&) { return OfGreen(GreenContext::Create(First(), SmCount{8})); }},
      {"GreenContext::Create: of a partition", Since(12040, kOk),
       [](const Things&) -> Outcome {
         const absl::StatusOr<SmSplit> split = SmSplit::Of(First(), SmCount{8}, 2);
         if (!split.ok()) return split.status();
         return OfGreen(GreenContext::Create(split->parts[0]));
       }},
      {"GreenContext::Create: with work queues", Since(13010, kOk),
       [](const Things&) -> Outcome {
         const absl::StatusOr<SmSplit> split = SmSplit::Of(First(), SmCount{8}, 2);
         if (!split.ok()) return split.status();
         return OfGreen(GreenContext::Create(split->parts[0], GreenContext::WorkQueues()));
       }},
      {"GreenContext::Release", Since(12040, kOk),
       [](const Things&) {
         return OfGreen(GreenContext::Create(First(), SmCount{8}),
                        [](GreenContext& green) { return green.Release(); });
       }},
  };
}

// What is still kept where the driver takes nothing back is given back by the next call.
template <typename Release>
cuguest::Error ReleaseKept(const Release& release) {
  const cuguest::Error released = release();
  if (released.code == CUDA_ERROR_NOT_PERMITTED) static_cast<void>(release());
  return released;
}

// Of two ends that the driver refuses a registration is left, which the next one takes over: pairs
// of faults would not find the same calls again.
std::vector<Call> Logs() {
  if (std::getenv("CUGUEST_TEST_FAULT_PAIRS") != nullptr) return {};
  return {
      {"DriverLog DriverLog::Open DriverLog::Close DriverLog::Reason", kOk,
       [](const Things&) -> Outcome {
         absl::StatusOr<DriverLog> log = DriverLog::Open();
         static_cast<void>(DriverLog::Reason(CUDA_ERROR_UNKNOWN));
         if (!log.ok()) return log.status();
         // Of one that could not be closed the callback stays for the next, if nobody closes it.
         const absl::Status status = log->Close();
         return Together(status, *std::move(log));
       }},
  };
}

std::vector<Call> Acquiring() {
  return {
      {"AcquireOn", kDepends, [](const Things&) { return AcquireOn(First()); }},
      {"AcquireOn: created", kOk,
       [](const Things&) { return AcquireOn(First(), IfInactive::kCreate); }},
      {"AcquireCurrent", kDepends, [](const Things&) { return AcquireCurrent(First()); }},
      {"AcquireFromStream", kOk,
       [](const Things& t) { return cuguest::AcquireFromStream(t.stream.get()); }},
      {"AcquireFromStream: a special one", kDepends,
       [](const Things&) { return cuguest::AcquireFromStream(nullptr); }},
      {"AcquireFromStream: a special one of a device", kOk,
       [](const Things&) {
         return cuguest::AcquireFromStream(nullptr, First(), IfInactive::kCreate);
       }},
      {"AcquireFromPointer", kOk,
       [](const Things& t) { return cuguest::AcquireFromPointer(t.memories.device); }},
      {"AcquireFromPointer: memory that no context owns", kOk,
       [](const Things& t) {
         return cuguest::AcquireFromPointer(t.memories.pool, IfInactive::kCreate);
       }},
      {"AcquireFromPointer: freed memory", kRefused,
       [](const Things& t) { return cuguest::AcquireFromPointer(t.freed); }},
      {"AcquireFromBuffer", kOk,
       [](const Things& t) {
         return cuguest::AcquireFromBuffer(t.memories.device, cuguest_test::kBytes);
       }},
      {"AcquireFromBuffer: virtual memory", kOk,
       [](const Things& t) {
         return cuguest::AcquireFromBuffer(t.memories.virtual_memory, cuguest_test::kUnit,
                                           IfInactive::kCreate);
       }},
      {"AcquireFromBuffer: a view", kOk,
       [](const Things& t) { return cuguest::AcquireFromBuffer(t.view); }},
      {"AcquireFromBuffer: a view of a destroyed context", kOver,
       [](const Things& t) { return cuguest::AcquireFromBuffer(t.ended_view); }},
      {"AcquiredGuard AcquiredGuard::Reassert AcquiredGuard::Leave", kOk,
       [](const Things& t) {
         AcquiredGuard guard(cuguest::AcquireFromStream(t.stream.get()));
         if (!guard.ok()) return ToStatus(guard);
         const CUresult reasserted = guard.Reassert();
         return FirstOf({reasserted, guard.Leave()});
       }},
      {"AcquiredGuard: a device", kOk,
       [](const Things&) {
         AcquiredGuard guard(First(), IfInactive::kCreate);
         return guard.ok() ? FirstOf({guard.Leave()}) : ToStatus(guard);
       }},
      {"AcquiredGuard: a stream", kOk,
       [](const Things& t) {
         AcquiredGuard guard(t.stream.get());
         return guard.ok() ? FirstOf({guard.Leave()}) : ToStatus(guard);
       }},
      {"AcquiredGuard: a pointer", kOk,
       [](const Things& t) {
         AcquiredGuard guard(t.memories.pool, IfInactive::kCreate, GuardMode::kAlwaysPush);
         return guard.ok() ? FirstOf({guard.Leave()}) : ToStatus(guard);
       }},
      {"AcquiredGuard::MoveTo", kOk,
       [](const Things& t) {
         AcquiredGuard guard;
         const cuguest::Error there = guard.MoveTo(AcquireOn(First(), IfInactive::kCreate));
         const cuguest::Error on = guard.MoveTo(cuguest::AcquireFromStream(t.stream.get()));
         const CUresult left = guard.Leave();
         return FirstOf({there.code, on.code, left});
       }},
      {"AcquireAny", kDepends, [](const Things&) { return cuguest::AcquireAny(); }},
      {"Acquired: a copy", kOk,
       [](const Things&) -> Outcome {
         cuguest::Acquired acquired = AcquireOn(First(), IfInactive::kCreate);
         if (!acquired.ok()) return ToStatus(acquired);
         return cuguest::Acquired(acquired);
       }},
      {"Acquired::Hold", kDepends,
       [](const Things&) -> Outcome {
         cuguest::Acquired acquired = cuguest::AcquireAny();
         return acquired.ok() ? ToStatus(acquired.Hold()) : ToStatus(acquired);
       }},
      {"AcquireOn: created and kept", kOk,
       [](const Things&) -> Outcome {
         cuguest::Acquired acquired = AcquireOn(First(), IfInactive::kCreateAndKeep);
         const CUresult acquiring = acquired.error().code;
         const cuguest::Error given =
             ReleaseKept([] { return cuguest::ReleaseKeptPrimary(First()); });
         const CUresult released = acquired.Release().code;
         return Together(FirstOf({acquiring, given.code, released}), std::move(acquired));
       }},
      {"PrimaryKeeper PrimaryKeeper::Keep PrimaryKeeper::ReleaseAll ReleaseKeptPrimaries", kOk,
       [](const Things&) -> Outcome {
         cuguest::PrimaryKeeper keeper;
         cuguest::Acquired acquired = AcquireOn(First(), IfInactive::kCreateAndKeep);
         const cuguest::Error kept = keeper.Keep(acquired);
         const cuguest::Error given = ReleaseKept([&] { return keeper.ReleaseAll(); });
         const cuguest::Error all = ReleaseKept([] { return cuguest::ReleaseKeptPrimaries(); });
         const CUresult acquiring = acquired.error().code;
         const CUresult released = acquired.Release().code;
         return Together(FirstOf({acquiring, kept.code, given.code, all.code, released}),
                         std::move(acquired));
       }},
      {"ReleaseKeptPrimary PrimaryKeeper::Release", kOk,
       [](const Things&) -> Outcome {
         cuguest::PrimaryKeeper keeper;
         cuguest::Acquired acquired = AcquireOn(First(), IfInactive::kCreate);
         if (!acquired.ok()) return ToStatus(acquired);
         const cuguest::Error kept = keeper.Keep(acquired);
         const cuguest::Error given = ReleaseKept([&] { return keeper.Release(First()); });
         const CUresult released = acquired.Release().code;
         return Together(FirstOf({kept.code, given.code, released}), std::move(acquired));
       }},
      {"ThreadHome ThreadHome::Check ThreadHome::Leave", kOk,
       [](const Things& t) -> Outcome {
         cuguest::ThreadHome home(t.stream.get(), cuguest::ThreadHome::Keep::kNothing,
                                  cuguest::ThreadHome::IfOver::kReenter);
         if (!home.ok()) return ToStatus(home.error());
         const absl::Status checked = ToStatus(home.Check());
         const absl::Status left = ToStatus(home.Leave());
         return checked.ok() ? left : checked;
       }},
      {"ThreadHome::MoveTo", kOk,
       [](const Things& t) -> Outcome {
         cuguest::ThreadHome home(t.home.ref());
         if (!home.ok()) return ToStatus(home.error());
         const absl::Status moved = ToStatus(home.MoveTo(t.other.ref()));
         const absl::Status left = ToStatus(home.Leave());
         return moved.ok() ? left : moved;
       }},
      {"Acquired Acquired::Release", kOk,
       [](const Things&) {
         cuguest::Acquired acquired = cuguest::AcquireOn(First(), IfInactive::kCreate);
         if (!acquired.ok()) return Outcome(ToStatus(acquired));
         const absl::Status released = ToStatus(acquired.Release());
         return Together(released, std::move(acquired));
       }},
      {"Acquired::GetDevice", kOk,
       [](const Things& t) -> Outcome {
         const cuguest::Acquired acquired = cuguest::AcquireFromStream(t.stream.get());
         if (!acquired.ok()) return cuguest::ToStatus(acquired);
         Device device = First();
         return ToStatus(acquired.GetDevice(&device), "find the device");
       }},
  };
}

// A value for which memory of its context is allocated.
using Buffers = PerContext<cuguest::DeviceBuffer<int>>;

absl::StatusOr<Buffers::Pin> MakeIn(Buffers& buffers, const ContextRef& context) {
  return buffers.GetOrMake(context, [](const ContextRef& in) {
    return cuguest::DeviceBuffer<int>::Allocate(in, Things::kCount);
  });
}

// use(buffers, ref), where a buffer was made in `ref`. A cache gives up what it still has.
template <typename Use>
std::function<Outcome(const Things&)> WithBuffers(const Use& use) {
  return [use](const Things& t) -> Outcome {
    Buffers buffers;
    absl::Status status = MakeIn(buffers, t.home.ref()).status();
    if (status.ok()) status = use(buffers, t);
    buffers.ForgetAll();
    return status;
  };
}

std::vector<Call> Values() {
  return {
      {"PerContext PerContext::GetOrMake PerContext::Find", kOk,
       WithBuffers([](Buffers& buffers, const Things& t) {
         const auto again = MakeIn(buffers, t.home.ref());
         if (!again.ok()) return again.status();
         return Holds(static_cast<bool>(buffers.Find(t.home.ref())));
       })},
      {"PerContext::GetOrMake: a destroyed context", kOver,
       [](const Things& t) {
         Buffers buffers;
         return MakeIn(buffers, t.ended).status();
       }},
      {"PerContext::Forget", kOk, WithBuffers([](Buffers& buffers, const Things& t) {
         return Holds(buffers.Forget(t.home.ref()));
       })},
      {"PerContext::ForgetDestroyed", kOk, WithBuffers([](Buffers& buffers, const Things& t) {
         return Holds(!buffers.ForgetDestroyed(t.ended));
       })},
      {"PerContext::DropDead", kOk,
       WithBuffers([](Buffers& buffers, const Things&) { return Holds(buffers.DropDead() == 0); })},
      {"PerContext::ForgetAll", kOk, WithBuffers([](Buffers& buffers, const Things&) {
         return Holds(buffers.ForgetAll() == 1);
       })},
  };
}

}  // namespace

const std::vector<Call>& CallsOfCore() {
  static const auto& calls =
      *new std::vector<Call>(Joined({Guards(), Names(), Logs(), Owners(), Acquiring(), Values()}));
  return calls;
}

}  // namespace cuguest_faults
