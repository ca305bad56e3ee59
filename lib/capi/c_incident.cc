// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/c.h"
#include "cuguest/incident.h"
#include "cuguest/incident_listener.h"
#include "lib/capi/c_storage.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

static_assert(CUGUEST_REPLACED == static_cast<int>(Incident::Kind::kReplaced));
static_assert(CUGUEST_LEAKED_PUSH == static_cast<int>(Incident::Kind::kLeakedPush));
static_assert(CUGUEST_EXTRA_POP == static_cast<int>(Incident::Kind::kExtraPop));
static_assert(CUGUEST_DESTROYED == static_cast<int>(Incident::Kind::kDestroyed));
static_assert(CUGUEST_FAILED == static_cast<int>(Incident::Kind::kFailed));
static_assert(CUGUEST_CAPTURE_MODE == static_cast<int>(Incident::Kind::kCaptureMode));
static_assert(CUGUEST_LAST_ERROR == static_cast<int>(Incident::Kind::kLastError));
static_assert(CUGUEST_ELSEWHERE == static_cast<int>(Incident::Kind::kElsewhere));
static_assert(CUGUEST_UNASKED == static_cast<int>(Incident::Kind::kUnasked));
static_assert(CUGUEST_OUT_OF_TURN == static_cast<int>(Incident::Kind::kOutOfTurn));
static_assert(CUGUEST_OWED == static_cast<int>(Incident::Kind::kOwed));
static_assert(CUGUEST_OWED + 1 == Incident::kKinds);
static_assert(CUGUEST_REPAIRED == static_cast<int>(Incident::Repair::kRepaired));
static_assert(CUGUEST_INFERRED == static_cast<int>(Incident::Repair::kInferred));
static_assert(CUGUEST_UNREPAIRED == static_cast<int>(Incident::Repair::kUnrepaired));

struct ListenerInStorage {
  ListenerInStorage(cuguest_incident_callback c, void* u) noexcept
      : callback(c), user(u), listener(&Call, this) {}

  static void Call(const Incident& from, void* self) {
    // Its own callback may remove it.
    const cuguest_incident_callback callback = static_cast<ListenerInStorage*>(self)->callback;
    void* const user = static_cast<ListenerInStorage*>(self)->user;
    const cuguest_incident incident = {sizeof(incident),
                                       static_cast<int>(from.kind),
                                       static_cast<int>(from.repair),
                                       from.result,
                                       from.line,
                                       from.file,
                                       from.expected,
                                       from.found,
                                       from.current,
                                       from.thread};
    callback(&incident, user);
  }

  const cuguest_incident_callback callback;
  void* const user;
  const IncidentListener listener;
};
using ListenerStorage = StorageOf<ListenerInStorage, cuguest_incident_listener>;

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

namespace c = cuguest::internal;

const char* cuguest_incident_name(int kind) {
  const bool is_one = kind >= 0 && kind < cuguest::Incident::kKinds;
  return cuguest::Name(
      static_cast<cuguest::Incident::Kind>(is_one ? kind : cuguest::Incident::kKinds));
}

const char* cuguest_repair_name(int repair) {
  const bool is_one = repair >= CUGUEST_REPAIRED && repair <= CUGUEST_UNREPAIRED;
  return cuguest::Name(is_one ? static_cast<cuguest::Incident::Repair>(repair)
                              : cuguest::Incident::Repair::kUnrepaired);
}

int cuguest_incident_listener_register(cuguest_incident_listener* listener,
                                       cuguest_incident_callback callback, void* user) {
  const c::ListenerStorage storage(listener);
  const CUresult code = callback != nullptr ? storage.CanBegin() : CUDA_ERROR_INVALID_VALUE;
  if (code == CUDA_SUCCESS) storage.Begin(callback, user);
  return code;
}

int cuguest_incident_listener_remove(cuguest_incident_listener* listener) {
  const c::ListenerStorage storage(listener);
  const CUresult code = storage.Claim();
  if (code == CUDA_SUCCESS) storage.End();
  if (code == CUDA_ERROR_ILLEGAL_STATE) c::AwaitListener(&storage->listener);
  return code;
}

void cuguest_incident_listener_cleanup(cuguest_incident_listener* listener) {
  static_cast<void>(cuguest_incident_listener_remove(listener));
}

unsigned long long cuguest_incident_count(int kind) {
  if (kind == -1) return cuguest::IncidentCount();
  const bool is_one = kind >= 0 && kind < cuguest::Incident::kKinds;
  return is_one ? cuguest::IncidentCount(static_cast<cuguest::Incident::Kind>(kind)) : 0;
}
