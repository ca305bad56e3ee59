// SPDX-License-Identifier: Apache-2.0

#include "cuguest/peer_access.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "lib/context/object_text.h"
#include "lib/context/relaxed_scope.h"
#include "lib/core/driver_access.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::ContextText;

std::string PairText(const ContextRef& context, const ContextRef& peer) {
  return absl::StrCat(ContextText(context.get()), " to ", ContextText(peer.get()));
}

// `call` with `context` current, where both contexts are alive. Outside of relaxed mode it would
// end captures.
template <typename Call>
CUresult CallInPair(const ContextRef& context, const ContextRef& peer, const Call& call) noexcept {
  const CUresult life = peer.Check();
  if (life != CUDA_SUCCESS) return life;
  const ContextGuard guard(context);
  if (!guard.ok()) return guard.result();
  const internal::RelaxedScope relaxed;
  return relaxed.result() == CUDA_SUCCESS ? call() : relaxed.result();
}

}  // namespace

absl::StatusOr<PeerLink> PeerAccess::Query(Device device, Device peer) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  int access = 0;
  int atomics = 0;
  int arrays = 0;
  int rank = 0;
  CUresult code = driver->DeviceCanAccessPeer(&access, device.get(), peer.get());
  const auto read = [&](CUdevice_P2PAttribute attribute, int* value) {
    if (code != CUDA_SUCCESS || driver->DeviceGetP2PAttribute == nullptr) return;
    if (device == peer) return;  // of itself: INVALID_DEVICE
    code = driver->DeviceGetP2PAttribute(value, attribute, device.get(), peer.get());
  };
  read(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, &atomics);
  read(CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, &arrays);
  read(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, &rank);
  CUGUEST_RETURN_IF_CUDA_ERROR(code, "query the link between devices",
                               absl::StrCat("device ", device.get(), " to device ", peer.get()));
  return PeerLink{access != 0, atomics != 0, arrays != 0, rank};
}

absl::StatusOr<PeerAccess> PeerAccess::Enable(const ContextRef& context, const ContextRef& peer) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  const CUresult code =
      CallInPair(context, peer, [&] { return driver->CtxEnablePeerAccess(peer.get(), 0); });
  const bool was_enabled = code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  if (code == CUDA_SUCCESS || was_enabled) return PeerAccess(context, peer, was_enabled);
  return ToStatus(code, "enable peer access", PairText(context, peer));
}

PeerAccess::~PeerAccess() { static_cast<void>(End()); }

absl::Status PeerAccess::Disable() {
  CUGUEST_RETURN_IF_CUDA_ERROR(End(), "disable peer access", PairText(context_, peer_));
  return absl::OkStatus();
}

// Without a text, for the destructor: it must not need memory.
CUresult PeerAccess::End() noexcept {
  if (context_.get() != nullptr && !was_enabled_) {
    CUresult code = CUDA_SUCCESS;
    const DriverTable* driver = internal::TryDriver(&code);
    if (driver == nullptr) return code;
    code = CallInPair(context_, peer_, [&] { return driver->CtxDisablePeerAccess(peer_.get()); });
    const bool is_over = code == CUDA_SUCCESS || code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
                         code == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED ||
                         code == CUDA_ERROR_DEINITIALIZED;
    if (!is_over) return code;
  }
  Leak();
  return CUDA_SUCCESS;
}

CUGUEST_END_NAMESPACE
