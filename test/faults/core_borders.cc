// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The border values of tiers 1 and 2: guards and scopes, devices, primary, shared and green
// contexts, what acquires a context, values per context.

#include <optional>

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/capture.h"
#include "cuguest/context_scope.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/free_memory.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident_listener.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/peer_access.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/primary_keeper.h"
#include "cuguest/relaxed.h"
#include "cuguest/shared_context.h"
#include "cuguest/sm_count.h"
#include "cuguest/sm_split.h"
#include "cuguest/status.h"
#include "cuguest/thread_home.h"
#include "test/faults/cc_parameters.h"

namespace cuguest_faults {
namespace {

using namespace cuguest;
using cuguest_runtime_test::EnterAndLeave;

Parameter<ContextGuard*> AGuard(Expected never, Expected left) {
  const Makes<ContextGuard> inside = [](const Things& things) {
    return std::make_unique<ContextGuard>(things.other.get());
  };
  return {Made(inside),
          {{"was never entered",
            Made<ContextGuard>([](const Things&) { return std::make_unique<ContextGuard>(); }),
            std::move(never)},
           {"was left", Made<ContextGuard>([inside](const Things& things) {
              auto guard = inside(things);
              BOOST_TEST(guard->Leave() == CUDA_SUCCESS);
              return guard;
            }),
            std::move(left)}}};
}

std::vector<Row> Guards() {
  Everywhere exact = AsksDriver();
  exact.on_dead = {kUnimplemented};
  return {
      MakeRow("ContextGuard", std::function([](CUcontext context, GuardMode mode) {
                ContextGuard guard(context, mode);
                return EnterAndLeave(guard);
              }),
              AsksDriver(), Handle(), Mode()),
      MakeRow("ContextGuard: by reference", std::function([](ContextRef context, GuardMode mode) {
                ContextGuard guard(context, mode);
                return EnterAndLeave(guard);
              }),
              AsksDriver(), Ref(), Mode()),
      MakeRow("ContextGuard::MoveTo", std::function([](ContextGuard* guard, CUcontext context) {
                return guard->MoveTo(context);
              }),
              UsesScope(), AGuard({0}, {0}), Handle()),
      MakeRow("ContextGuard::MoveTo: by reference",
              std::function(
                  [](ContextGuard* guard, ContextRef context) { return guard->MoveTo(context); }),
              UsesScope(), AGuard({0}, {0}), Ref()),
      MakeRow("ContextGuard::Reassert",
              std::function([](ContextGuard* guard) { return guard->Reassert(); }), UsesScope(),
              AGuard({kPrecondition}, {kPrecondition})),
      MakeRow("ContextGuard::Leave",
              std::function([](ContextGuard* guard) { return guard->Leave(); }), EndsScope(),
              AGuard({0}, {0})),
      MakeRow("ExactGuard ExactGuard::Reassert ExactGuard::Leave",
              std::function([](CUcontext context) {
                ExactGuard guard(context);
                return EnterAndLeave(guard);
              }),
              exact, Handle()),
      MakeRow("ExactGuard: by reference", std::function([](ContextRef context) {
                ExactGuard guard(context);
                return EnterAndLeave(guard);
              }),
              exact, Ref()),
      MakeRow("NoContextGuard NoContextGuard::Leave", std::function([] {
                NoContextGuard guard;
                return guard.ok() ? ToStatus(guard.Leave(), "restore") : ToStatus(guard);
              }),
              exact),
      MakeRow("HostScope HostScope::Leave: of a guard", std::function([](ContextGuard* guard) {
                HostScope host(*guard);
                return host.ok() ? ToStatus(host.Leave(), "restore") : ToStatus(host);
              }),
              {{0}, {kPrecondition}, {kPrecondition}, {kPrecondition}, {kCancelled}},
              AGuard({0}, {0})),
      MakeRow("CaptureModeGuard CaptureModeGuard::Reassert CaptureModeGuard::Leave",
              std::function([](int mode) {
                CaptureModeGuard guard(static_cast<CUstreamCaptureMode>(mode));
                return EnterAndLeave(guard);
              }),
              {{0}, {0}, {0}, {0}, {kCancelled}},
              Among(2, {Is("is -1", -1, {kInvalid}), Is("is 3", 3, {kInvalid}),
                        Is("is INT_MIN", INT_MIN, {kInvalid}), Is("is 0", 0, {0}),
                        Is("is 1", 1, {0})})),
  };
}

Parameter<ContextScope*> AScope(const Expected& outside, const Expected& inside) {
  const auto entered = [](const Things& things) {
    ContextScope scope;
    BOOST_TEST(scope.Enter(things.other.get()) == CUDA_SUCCESS);
    return scope;
  };
  Parameter<ContextScope*> scope = Owner<ContextScope>(entered, outside);
  scope.borders.push_back({"was left",
                           [](Given& given) {
                             auto* const left = given.Keep(ContextScope());
                             BOOST_TEST(left->Enter(given.things.other.get()) == CUDA_SUCCESS);
                             BOOST_TEST(left->Leave() == CUDA_SUCCESS);
                             return left;
                           },
                           outside});
  scope.borders.push_back({"is inside", scope.valid, inside});
  return scope;
}
Parameter<ContextScope*> AnEmptyScope() {
  Parameter<ContextScope*> scope = AScope({0}, {kPrecondition});
  scope.valid = [](Given& given) { return given.Keep(ContextScope()); };
  return scope;
}

std::vector<Row> Scopes() {
  return {
      MakeRow("ContextScope ContextScope::Enter",
              std::function([](ContextScope* scope, CUcontext context, GuardMode mode) {
                return scope->Enter(context, mode);
              }),
              AsksDriver(), AnEmptyScope(), Handle(), Mode()),
      MakeRow("ContextScope::Enter: by reference",
              std::function([](ContextScope* scope, ContextRef context, GuardMode mode) {
                return scope->Enter(context, mode);
              }),
              AsksDriver(), AnEmptyScope(), Ref(), Mode()),
      MakeRow("ContextScope::MoveTo", std::function([](ContextScope* scope, CUcontext context) {
                return scope->MoveTo(context);
              }),
              UsesScope(), AScope({0}, {0}), Handle()),
      MakeRow("ContextScope::MoveTo: by reference",
              std::function(
                  [](ContextScope* scope, ContextRef context) { return scope->MoveTo(context); }),
              UsesScope(), AScope({0}, {0}), Ref()),
      MakeRow("ContextScope::Reassert",
              std::function([](ContextScope* scope) { return scope->Reassert(); }), UsesScope(),
              AScope({kPrecondition}, {0})),
      MakeRow("ContextScope::Leave",
              std::function([](ContextScope* scope) { return scope->Leave(); }), EndsScope(),
              AScope({kPrecondition}, {0})),
      MakeRow("AcquiredGuard AcquiredGuard::Reassert AcquiredGuard::Leave",
              std::function([](Device device, IfInactive if_inactive, GuardMode mode) {
                AcquiredGuard guard(device, if_inactive, mode);
                if (!guard.ok()) return ToStatus(guard);
                const CUresult code = guard.Reassert();
                return code != CUDA_SUCCESS ? ToStatus(code, "reassert")
                                            : ToStatus(guard.Leave(), "restore");
              }),
              AsksDriver(), ADevice(), Creating(), Mode()),
      MakeRow("AcquiredGuard: an address",
              std::function([](CUdeviceptr pointer, IfInactive if_inactive, GuardMode mode) {
                AcquiredGuard guard(pointer, if_inactive, mode);
                return guard.ok() ? ToStatus(guard.Leave(), "restore") : ToStatus(guard);
              }),
              AsksDriver(), Address({kInvalid}, {0}), Creating({0}), Mode()),
      MakeRow("ThreadHome ThreadHome::Check ThreadHome::Leave ThreadHome::MoveTo",
              std::function([](ContextRef context, ContextRef next) {
                cuguest::ThreadHome home(context);
                if (!home.ok()) return ToStatus(home.error());
                const cuguest::Error moved = home.MoveTo(next);
                const cuguest::Error checked = home.Check();
                const cuguest::Error left = home.Leave();
                if (!moved.ok()) return ToStatus(moved);
                return ToStatus(checked.ok() ? left : checked);
              }),
              AsksDriver(), Ref(), Ref()),
      MakeRow("ThreadHome: an address", std::function([](CUdeviceptr pointer) {
                cuguest::ThreadHome home(pointer);
                return ToStatus(home.ok() ? home.Leave() : home.error());
              }),
              AsksDriver(), Address({kInvalid}, {0})),
      MakeRow("Relaxed Relaxed::Reassert Relaxed::Leave",
              std::function([](ContextRef context, GuardMode mode) {
                Relaxed<ContextGuard> guard(context, mode);
                return EnterAndLeave(guard);
              }),
              AsksDriver(), Ref(), Mode()),
      MakeRow("Relaxed: of a device",
              std::function([](Device device, IfInactive if_inactive, GuardMode mode) {
                Relaxed<AcquiredGuard> guard(device, if_inactive, mode);
                return EnterAndLeave(guard);
              }),
              AsksDriver(), ADevice(), Creating(), Mode()),
      MakeRow(
          "AcquiredGuard: of what was not acquired", std::function([](int code) {
            cuguest::Error error;
            error.code = static_cast<CUresult>(code);
            return AcquiredGuard(Acquired(error)).error();
          }),
          {{kPrecondition}, {kPrecondition}, {kPrecondition}, {kPrecondition}, {kPrecondition}},
          Among<int>(CUDA_ERROR_CONTEXT_IS_DESTROYED,
                     {Is<int>("is unknown", 9999, {2}), Is<int>("is none", 0, {kPrecondition})})),
  };
}

ContextRef OnDevice1(Given& given) {
  const auto end = [](CUcontext* context) { RAW(cuCtxDestroy)(*context); };  // at exit it fails
  return ContextRef::Borrow(*given.Keep(cuguest_test::OwnContext(1).release(), end));
}

std::vector<Row> Devices() {
  // A host function may ask of a created stream; of stream 0 it is not told.
  const Everywhere asks_capture = {{0}, {kRefuses}, {0}, {0}, {kRefuses}, Expected{0, kRefuses}};
  Everywhere asks_housekeeping = asks_capture;
  asks_housekeeping.host_function = {kRefuses};
  Parameter<ContextRef> peer = Ref();
  peer.valid = OnDevice1;
  peer.borders.push_back({"is of the same device",
                          [](Given& given) { return given.things.other.ref(); },
                          Expected{kUnimplemented}.ByDriver()});
  Everywhere in_any_place = AsksDriver();
  in_any_place.host_function = {0, kNoPermission};
  const Device::Uuid uuid = ValueOf(UuidOf(Device::Borrow(0)));
  const std::string pci_id = ValueOf(PciBusIdOf(Device::Borrow(0)));
  return {
      MakeRow("ContextRef ContextRef::Borrow", std::function([](CUcontext context) {
                return ToStatus(ContextRef::Borrow(context));
              }),
              AsksDriver(), Handle()),
      MakeRow("ContextRef::Check ContextRef::IsAlive", std::function([](ContextRef context) {
                BOOST_TEST(context.IsAlive() == (context.Check() == CUDA_SUCCESS));
                return context.Check();
              }),
              AsksDriver(), Ref()),
      MakeRow("Device DeviceAt",
              std::function([](Device device) { return DeviceAt(device.ordinal()); }), in_any_place,
              ADevice()),
      MakeRow("DeviceAt: by UUID", std::function([](Device::Uuid uuid) { return DeviceAt(uuid); }),
              in_any_place,
              Parameter<Device::Uuid>{[uuid](Given&) { return uuid; },
                                      {Is("is of zeros alone", Device::Uuid(), {kNotFound})}}),
      MakeRow("DeviceAt: by PCI id", std::function([](std::string id) { return DeviceAt(id); }),
              in_any_place,
              Parameter<std::string>{[pci_id](Given&) { return pci_id; },
                                     {Is<std::string>("is empty", "", {kInvalid}),
                                      Is<std::string>("is no id", "::.", {kInvalid}),
                                      Is("is endless", std::string(4096, '0'), {kInvalid}),
                                      Is("has a NUL", std::string("00:00.0\0", 8), {kInvalid}),
                                      Is<std::string>("is nobody's", "ff:1f.7", {kNotFound})}}),
      MakeRow("NameOf", std::function([](Device device) { return NameOf(device); }), in_any_place,
              ADevice()),
      MakeRow("PciBusIdOf", std::function([](Device device) { return PciBusIdOf(device); }),
              in_any_place, ADevice()),
      MakeRow("UuidOf", std::function([](Device device) { return UuidOf(device); }), in_any_place,
              ADevice()),
      MakeRow("SmCountOf", std::function([](Device device) { return SmCountOf(device); }),
              in_any_place, ADevice()),
      MakeRow("SmCountOf: a context", std::function([](ContextRef ref) { return SmCountOf(ref); }),
              AsksDriver(), Ref()),
      MakeRow("CaptureStatusOf", std::function([](CUstream stream) {
                return CaptureStatusOf(stream) == std::nullopt ? kRefuses : 0;
              }),
              asks_capture, StreamHandle({0})),
      MakeRow("HousekeepingIsSafe", std::function([](CUstream stream) {
                return HousekeepingIsSafe(stream) ? 0 : kRefuses;
              }),
              asks_housekeeping, StreamHandle({0})),
      MakeRow("PeerAccess::Query", std::function([](Device device, Device peer) {
                return PeerAccess::Query(device, peer);
              }),
              in_any_place, ADevice(), ADevice()),
      MakeRow("PeerAccess::Check", std::function([](Device device, Device peer) {
                return PeerAccess::Check(device, peer);
              }),
              in_any_place, ADevice().But("is 1", {kUnimplemented}),
              Among(Device::Borrow(1),
                    {Is("is the same one", Device::Borrow(0), {kUnimplemented}),
                     Is("is -1", Device::Borrow(-1), {kNotFound}),
                     Is("is 4711", Device::Borrow(4711), Expected{kNotFound}.ByDriver())})),
      MakeRow("GetFreeMemory", std::function([](Device device, IfInactive if_inactive) {
                return ToStatus(GetFreeMemory(device, if_inactive).error());
              }),
              AsksDriver(), ADevice(), Creating()),
      MakeRow("Driver::IsInitialized",
              std::function([] { return Driver::IsInitialized() ? 0 : kRefuses; }),
              {{0}, Expected{kRefuses}.ByDriver(), {0}, {0}, {0}}),
      MakeRow("PeerAccess PeerAccess::Enable",
              std::function([](ContextRef context, ContextRef peer) {
                return PeerAccess::Enable(context, peer);
              }),
              AsksDriver(), Ref(), peer),
      MakeRow("PeerAccess::Release",
              std::function([](PeerAccess* access) { return access->Release(); }),
              Everywhere{{0}, {kPrecondition}, {kNoPermission}, {0}, {0}},
              Parameter<PeerAccess*>{
                  [](Given& given) {
                    return given.Keep(
                        ValueOf(PeerAccess::Enable(given.things.home.ref(), OnDevice1(given))));
                  },
                  {{"is empty", [](Given& given) { return given.Keep(PeerAccess()); }, {0}}}}),
  };
}

Everywhere GivesBack() { return {{0}, {kPrecondition}, Expected{kNoPermission}.Kept(), {0}, {0}}; }

// Of what nobody keeps, there is nothing to give back.
Parameter<Device> AnyDevice() {
  Parameter<Device> any = ADevice();
  for (auto& border : any.borders) border.expected = {0};
  return any;
}

std::vector<Row> Owners() {
  const auto primary = [](const Things&) {
    return ValueOf(PrimaryContext::Retain(Device::Borrow(0)));
  };
  const auto acquired = [](const Things&) {
    return ValueOf(AcquireOn(Device::Borrow(0), IfInactive::kCreate));
  };
  const auto shared = [](const Things& things) {
    return ValueOf(SharedContext::Attach(things.home.ref()));
  };
  const auto green = [](const Things&) {
    return ValueOf(GreenContext::Create(Device::Borrow(0), SmCount{8}));
  };
  const auto count = [](Expected none) {
    return Among(SmCount{8}, {Is("is 0", SmCount{0}, std::move(none)), Is("is 1", SmCount{1}, {0}),
                              Is("is the largest", SmCount{UINT_MAX}, {kInvalid})});
  };
  // Only what holds a primary context asks the driver.
  Everywhere copies = AsksDriver();
  copies.at_exit = {0, kCancelled};
  Everywhere holds;
  holds.at_exit = {0, kCancelled};
  const auto flags = Among(0U, {Is("is the last flag", 1U << 31, Expected{kInvalid}.ByDriver()),
                                Is("is every flag", UINT_MAX, Expected{kInvalid}.ByDriver())});
  return {
      MakeRow("PrimaryContext PrimaryContext::Retain",
              std::function([](Device device) { return PrimaryContext::Retain(device); }),
              AsksDriver(), ADevice()),
      MakeRow(
          "PrimaryContext::RetainIfActive",
          std::function([](Device device) { return PrimaryContext::RetainIfActive(device); }),
          {{0, kPrecondition}, {kPrecondition}, {kNoPermission}, {0, kPrecondition}, {kCancelled}},
          ADevice().But("is 1", {0, kPrecondition})),
      MakeRow("PrimaryContext::Query",
              std::function([](Device device) { return PrimaryContext::Query(device); }),
              AsksDriver(), ADevice()),
      MakeRow("PrimaryContext::Release",
              std::function([](PrimaryContext* owner) { return owner->Release(); }), GivesBack(),
              Owner<PrimaryContext>(primary, {0})),
      MakeRow("Acquired Acquired::Release",
              std::function([](Acquired* owner) { return owner->Release(); }), GivesBack(),
              Owner<Acquired>(acquired, {0})),
      MakeRow("Acquired::GetDevice", std::function([](Acquired* owner) {
                Device device = Device::Borrow(-1);
                return owner->GetDevice(&device);
              }),
              {}, Owner<Acquired>(acquired, {kPrecondition})),
      MakeRow("Acquired: a copy", std::function([](Acquired* owner) { return Acquired(*owner); }),
              copies, Owner<Acquired>(acquired, {kPrecondition})),
      MakeRow("Acquired::Hold", std::function([](Acquired* owner) {
                // Of a context that somebody has created it is refused.
                const bool is_primary = owner->holds() || !owner->ok();
                const absl::Status held = ToStatus(owner->Hold());
                const bool is_refused = absl::IsUnimplemented(held) && !is_primary;
                return is_refused ? absl::OkStatus() : held;
              }),
              holds, Owner<Acquired>(acquired, {kPrecondition})),
      MakeRow("AcquiredGuard::MoveTo", std::function([](Acquired* owner) {
                AcquiredGuard guard;
                const cuguest::Error moved = guard.MoveTo(*owner);
                return moved.ok() ? ToStatus(guard.Leave(), "restore") : ToStatus(moved);
              }),
              AsksDriver(), Owner<Acquired>(acquired, {kPrecondition})),
      MakeRow("PrimaryKeeper PrimaryKeeper::Keep PrimaryKeeper::ReleaseAll",
              std::function([](Acquired* owner) {
                cuguest::PrimaryKeeper keeper;
                const cuguest::Error kept = keeper.Keep(*owner);
                if (!kept.ok()) return ToStatus(kept);
                return keeper.Keeps(Device::Borrow(0)) == owner->holds()
                           ? ToStatus(keeper.ReleaseAll())
                           : absl::InternalError("another is kept than is held");
              }),
              copies, Owner<Acquired>(acquired, {kPrecondition})),
      MakeRow("PrimaryKeeper::Release",
              std::function([](Device device) { return cuguest::PrimaryKeeper().Release(device); }),
              {}, AnyDevice()),
      MakeRow("ReleaseKeptPrimary ReleaseKeptPrimaries", std::function([](Device device) {
                const cuguest::Error one = cuguest::ReleaseKeptPrimary(device);
                return one.ok() ? cuguest::ReleaseKeptPrimaries() : one;
              }),
              {}, AnyDevice()),
      MakeRow("PrimaryContext::WasReset",
              std::function([](PrimaryContext* owner) { return owner->WasReset() ? kRefuses : 0; }),
              {}, Owner<PrimaryContext>(primary, {0})),
      MakeRow("SharedContext SharedContext::Create", std::function([](Device device, unsigned of) {
                return SharedContext::Create(device, of);
              }),
              AsksDriver(), ADevice(), flags),
      MakeRow("SharedContext::Attach",
              std::function([](CUcontext context) { return SharedContext::Attach(context); }),
              AsksDriver(), Handle(kInvalid)),
      MakeRow("SharedContext::Attach: by reference",
              std::function([](ContextRef context) { return SharedContext::Attach(context); }),
              AsksDriver(), Ref()),
      MakeRow("SharedContext::Release",
              std::function([](SharedContext* owner) { return owner->Release(); }), {},
              Owner<SharedContext>(shared, {kPrecondition})),
      MakeRow("GreenContext GreenContext::Create", std::function([](Device device, SmCount least) {
                return GreenContext::Create(device, least);
              }),
              AsksDriver(), ADevice(), count({kInvalid})),
      MakeRow("GreenContext::Create: of no partition",
              std::function([](int) { return GreenContext::Create(SmSplit::Part()); }),
              {{kInvalid}, {kPrecondition}, {kInvalid}, {kInvalid}, {kInvalid}}, Among(0, {})),
      MakeRow("GreenContext::Release",
              std::function([](GreenContext* owner) { return owner->Release(); }), GivesBack(),
              Owner<GreenContext>(green, {0, kPrecondition})),
      MakeRow("SmSplit::Of", std::function([](Device device, SmCount least, unsigned groups) {
                return SmSplit::Of(device, least, groups);
              }),
              AsksDriver(), ADevice(), count({kInvalid}),
              Among(1U, {Is("is 0", 0U, {kInvalid}), Is("is the largest", UINT_MAX, {0})})),
      MakeRow("SmSplit::OfSizes", std::function([](Device device, SmCount first, SmCount second) {
                return SmSplit::OfSizes(device, {first, second});
              }),
              AsksDriver(), ADevice(), count({kInvalid}), count({kInvalid})),
  };
}

std::vector<Row> Acquiring() {
  Everywhere current = AsksDriver();
  current.here = current.elsewhere = {0, kPrecondition};
  // Somewhere a primary context is active; or none.
  Everywhere any = AsksDriver();
  any.here = any.elsewhere = {0, kPrecondition};
  const auto depends = [] { return Expected{0, kPrecondition}; };
  const auto range_is = [](size_t bytes, Expected expected) {
    return Is("is " + std::to_string(bytes), bytes, std::move(expected));
  };
  Parameter<Device> others = ADevice();
  for (auto& border : others.borders) border.expected = depends();
  return {
      MakeRow("AcquireFromStream",
              std::function([](CUstream stream) { return AcquireFromStream(stream); }),
              AsksDriver(), StreamHandle(depends())),
      MakeRow("AcquireFromStream: on a device",
              std::function([](Device device, IfInactive if_inactive) {
                return AcquireFromStream(nullptr, device, if_inactive);
              }),
              AsksDriver(), ADevice(), Creating()),
      MakeRow("AcquireFromPointer", std::function([](CUdeviceptr pointer, IfInactive if_inactive) {
                return AcquireFromPointer(pointer, if_inactive);
              }),
              AsksDriver(), Address({kInvalid}, {0}), Creating({0})),
      MakeRow("AcquireFromBuffer",
              std::function([](CUdeviceptr pointer, size_t bytes, IfInactive if_inactive) {
                return AcquireFromBuffer(pointer, bytes, if_inactive);
              }),
              AsksDriver(), Address({kInvalid}, {kInvalid}),
              Among(cuguest_test::kBytes,
                    {range_is(0, {kInvalid}), range_is(1, {0}),
                     range_is(cuguest_test::kBytes + 1, {kInvalid}),
                     range_is(SIZE_MAX / 2, {kInvalid}), range_is(SIZE_MAX, {kInvalid})}),
              Creating({0})),
      MakeRow("AcquireCurrent", std::function([](Device device) { return AcquireCurrent(device); }),
              current, others),
      MakeRow("AcquireAny", std::function([](int) { return cuguest::AcquireAny(); }), any,
              Among(0, {})),
      MakeRow("AcquireOn", std::function([](Device device, IfInactive if_inactive) {
                return AcquireOn(device, if_inactive);
              }),
              AsksDriver(), ADevice(), Creating()),
  };
}

// Of the context it is in, made without a driver call.
using Numbers = PerContext<int>;
Parameter<Numbers*> WithHome() {
  return {[](Given& given) {
            auto* const numbers = given.Keep(std::make_unique<Numbers>())->get();
            BOOST_TEST(numbers
                           ->GetOrMake(given.things.home.ref(),
                                       [](const ContextRef&) { return absl::StatusOr<int>(1); })
                           .ok());
            return numbers;
          },
          {{"is empty",
            [](Given& given) { return given.Keep(std::make_unique<Numbers>())->get(); },
            {0, kRefuses}}}};
}

std::vector<Row> Values() {
  const auto answer = [](const ContextRef&) { return absl::StatusOr<int>(42); };
  const auto none = [] { return Expected{kRefuses}; };
  Parameter<ContextRef> names = Ref();
  for (auto& border : names.borders) border.expected = none();
  // A child finds the values and keeps them.
  const Everywhere forgets = {{0}, {kRefuses}, {0}, {0}, {0}};
  const Parameter<CUcontext> handle = Handle().But("is null", none());
  return {
      MakeRow("PerContext PerContext::GetOrMake",
              std::function([answer](Numbers* numbers, ContextRef context) {
                return numbers->GetOrMake(context, answer).status();
              }),
              {{0}, {0}, {0}, {0}, {0}}, WithHome(), Ref()),
      MakeRow("PerContext::GetOrMake: by handle",
              std::function([answer](Numbers* numbers, CUcontext context) {
                return numbers->GetOrMake(context, answer).status();
              }),
              AsksDriver(), WithHome(), Handle()),
      MakeRow("PerContext::Find", std::function([](Numbers* numbers, ContextRef context) {
                return numbers->Find(context) ? 0 : kRefuses;
              }),
              {}, WithHome(), names),
      MakeRow("PerContext::Find: by handle", std::function([](Numbers* numbers, CUcontext context) {
                return numbers->Find(context) ? 0 : kRefuses;
              }),
              {{0}, {kRefuses}, {kRefuses}, {0}, {kRefuses}}, WithHome(), handle),
      MakeRow("PerContext::Forget", std::function([](Numbers* numbers, ContextRef context) {
                return numbers->Forget(context) ? 0 : kRefuses;
              }),
              forgets, WithHome(), names),
      MakeRow("PerContext::ForgetDestroyed",
              std::function([](Numbers* numbers, ContextRef context) {
                return numbers->ForgetDestroyed(context) ? 0 : kRefuses;
              }),
              forgets, WithHome(), names),
      MakeRow("PerContext::ForgetAll", std::function([](Numbers* numbers) {
                numbers->ForgetAll();
                return numbers->size() == 0 ? 0 : kRefuses;
              }),
              forgets, WithHome()),
      MakeRow("PerContext::DropDead", std::function([](Numbers* numbers) {
                return numbers->DropDead() == 0 ? 0 : kRefuses;
              }),
              {}, WithHome()),
  };
}

}  // namespace

std::vector<Row> BordersOfCore() {
  return Joined({Guards(), Scopes(), Devices(), Owners(), Acquiring(), Values()});
}

}  // namespace cuguest_faults
