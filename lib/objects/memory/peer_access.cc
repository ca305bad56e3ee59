// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/peer_access.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/devices.h"
#include "cuguest/objects/driver.h"
#include "cuguest/status.h"
#include "lib/core/driver_access.h"
#include "lib/objects/memory/in_context.h"
#include "lib/objects/memory/one_at_a_time.h"
#include "lib/objects/object_driver.h"
#include "lib/share/ending.h"
#include "lib/share/owed.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::ContextText;

std::string PairText(const ContextRef& context, const ContextRef& peer) {
  return absl::StrCat(ContextText(context.get()), " to ", ContextText(peer.get()));
}

std::string DevicesText(Device device, Device peer) {
  return absl::StrCat("device ", device.get(), " to device ", peer.get());
}

CUresult AskForAccess(const ObjectDriver& driver, Device device, Device peer, int* access) {
  return internal::AskOf(std::min(device.get(), peer.get()), [&] {
    return driver.DeviceCanAccessPeer(access, device.get(), peer.get());
  });
}

bool IsMig(Device device) {
  const absl::StatusOr<Device::Uuid> uuid = UuidOf(device);
  return uuid.ok() && uuid->is_mig;
}

// As a clause behind the devices.
std::string WhyNoAccess(Device device, Device peer) {
  if (device == peer) return ", which is the same one: a device is no peer of itself";
  for (const Device each : {device, peer}) {
    if (IsMig(each)) return absl::StrCat(", and device ", each.get(), " is a MIG instance");
  }
  const auto at = [](Device each) { return PciBusIdOf(each).value_or("an unknown place"); };
  return absl::StrCat(", at ", at(device), " and ", at(peer),
                      " on the PCI bus: the driver denies the link and gives no reason. Usually it "
                      "is the topology (nvidia-smi topo -p2p r), an IOMMU that translates, or PCIe "
                      "ACS");
}

// `call` with `context` current, where both contexts are alive. Outside of relaxed mode it would
// end captures.
template <typename Call>
CUresult CallInPair(const ContextRef& context, const ContextRef& peer, const Call& call) noexcept {
  const CUresult life = peer.Check();
  return life == CUDA_SUCCESS ? internal::CallIn(context, call).code : life;
}

// What the objects of one pair share. The driver has one switch for them all.
struct Pair {
  ContextRef context;
  ContextRef peer;
  unsigned objects = 0;
  bool is_ours = false;  // one of them has enabled it
  Pair* next = nullptr;
};

Pair* g_first = nullptr;  // of the thread that has the turn

// Where the pair is, or the end of the list.
Pair** Find(const ContextRef& context, const ContextRef& peer) noexcept {
  Pair** place = &g_first;
  while (*place != nullptr && ((*place)->context != context || (*place)->peer != peer)) {
    place = &(*place)->next;
  }
  return place;
}

// One object more, if `enable` or somebody else has enabled it. `made` becomes the pair where there
// was none.
template <typename Enable>
CUresult Join(std::unique_ptr<Pair> made, bool* was_enabled, const Enable& enable) noexcept {
  const internal::OneAtATime<Pair> turn;
  if (!turn.ok()) return CUDA_ERROR_ILLEGAL_STATE;
  Pair** const place = Find(made->context, made->peer);
  const CUresult code = enable();
  const bool is_on = code == CUDA_SUCCESS || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  if (!is_on) return code;
  if (*place == nullptr) *place = made.release();
  Pair& pair = **place;
  // Without ids (below CUDA 12.0) what was not enabled is of other contexts than those that were
  // counted, at the same handles.
  if (code == CUDA_SUCCESS && pair.context.id() == 0) pair.objects = 0;
  pair.is_ours |= code == CUDA_SUCCESS;
  *was_enabled = !pair.is_ours;
  ++pair.objects;
  return CUDA_SUCCESS;
}

// One object less; `disable` is called for the last one of those that had enabled it.
template <typename Disable>
CUresult Leave(const ContextRef& context, const ContextRef& peer, const Disable& disable) noexcept {
  const internal::OneAtATime<Pair> turn;
  if (!turn.ok()) return internal::kStillHeld;
  Pair** const place = Find(context, peer);
  Pair* const pair = *place;
  if (pair == nullptr) return CUDA_SUCCESS;  // as above: it was another pair's
  const bool is_last = pair->objects == 1;
  CUresult code = is_last && pair->is_ours ? disable() : CUDA_SUCCESS;
  if (code == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED) code = CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return code;
  --pair->objects;
  if (!is_last) return CUDA_SUCCESS;
  *place = pair->next;
  delete pair;
  return CUDA_SUCCESS;
}

}  // namespace

absl::Status PeerAccess::Check(Device device, Device peer) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::GetInitialized());
  int access = 0;
  CUresult code = AskForAccess(*driver, device, peer, &access);
  if (code == CUDA_SUCCESS && access == 0) code = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  CUGUEST_RETURN_IF_CUDA_ERROR(
      code, "check peer access",
      absl::StrCat(DevicesText(device, peer), code == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
                                                  ? WhyNoAccess(device, peer)
                                                  : std::string()));
  return absl::OkStatus();
}

absl::StatusOr<PeerAccess::Link> PeerAccess::Query(Device device, Device peer) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::GetInitialized());
  int access = 0;
  int atomics = 0;
  int arrays = 0;
  int rank = 0;
  CUresult code = AskForAccess(*driver, device, peer, &access);
  const auto read = [&](CUdevice_P2PAttribute attribute, int* value) {
    if (code != CUDA_SUCCESS || driver->DeviceGetP2PAttribute == nullptr) return;
    if (device == peer) return;  // of itself: INVALID_DEVICE
    code = driver->DeviceGetP2PAttribute(value, attribute, device.get(), peer.get());
  };
  read(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, &atomics);
  read(CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, &arrays);
  read(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, &rank);
  CUGUEST_RETURN_IF_CUDA_ERROR(code, "query the link between devices", DevicesText(device, peer));
  return PeerAccess::Link{access != 0, atomics != 0, arrays != 0, rank};
}

absl::StatusOr<PeerAccess> PeerAccess::Enable(const ContextRef& context, const ContextRef& peer) {
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  auto made = std::make_unique<Pair>();
  made->context = context;
  made->peer = peer;
  bool was_enabled = false;
  const CUresult code = CallInPair(context, peer, [&] {
    return Join(std::move(made), &was_enabled,
                [&] { return driver->CtxEnablePeerAccess(peer.get(), 0); });
  });
  CUGUEST_RETURN_IF_CUDA_ERROR(code, "enable peer access", PairText(context, peer));
  return PeerAccess(context, peer, was_enabled);
}

PeerAccess::~PeerAccess() {
  internal::EndOrOwe(*this, "a PeerAccess", &PeerAccess::End, &PeerAccess::Leak);
}

absl::Status PeerAccess::Release() {
  CUGUEST_RETURN_IF_CUDA_ERROR(End(), "disable peer access", PairText(context_, peer_));
  return absl::OkStatus();
}

// Without a text, for the destructor: it must not need memory.
CUresult PeerAccess::End() noexcept {
  if (context_.get() == nullptr) return CUDA_SUCCESS;
  CUresult code = CUDA_SUCCESS;
  const ObjectDriver* driver = internal::TryObjectDriver(&code);
  if (driver == nullptr) return code;
  code = CallInPair(context_, peer_, [&] {
    return Leave(context_, peer_, [&] { return driver->CtxDisablePeerAccess(peer_.get()); });
  });
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED || code == CUDA_ERROR_DEINITIALIZED) {
    code = Leave(context_, peer_, [] { return CUDA_SUCCESS; });  // with the context it is over
  }
  if (code == CUDA_SUCCESS) Leak();
  return code;
}

CUGUEST_END_NAMESPACE
