// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of the C API.

#include <initializer_list>

#include "cuguest/c.h"
#include "test/faults/operations.h"
#include "test/support/raw_driver.h"

namespace cuguest_faults {
namespace {

using namespace cuguest_runtime_test;
using absl::StatusCode;

constexpr auto kOk = StatusCode::kOk;
constexpr auto kOver = StatusCode::kFailedPrecondition;
constexpr auto kDepends = std::nullopt;

// The first failure; all of them were done.
absl::Status FirstOf(std::initializer_list<int> codes) {
  for (const int code : codes) {
    if (code != 0) return cuguest::ToStatus(static_cast<CUresult>(code), "call the C API");
  }
  return absl::OkStatus();
}

absl::StatusOr<cuguest_ref> RefTo(CUcontext context) {
  cuguest_ref ref = CUGUEST_REF_INIT;
  const int code = cuguest_ref_borrow(&ref, context);
  if (code != 0) return FirstOf({code});
  return ref;
}

// use(things, ref), of a reference to `home`.
template <typename Use>
std::function<Outcome(const Things&)> WithRef(const Use& use) {
  return [use](const Things& t) -> Outcome {
    const absl::StatusOr<cuguest_ref> ref = RefTo(t.home.get());
    return ref.ok() ? use(t, *ref) : ref.status();
  };
}

std::vector<Call> Guards() {
  return {
      {"cuguest_ref_borrow cuguest_ref_check", kOk,
       WithRef([](const Things&, const cuguest_ref& ref) {
         return FirstOf({cuguest_ref_check(&ref)});
       })},
      {"cuguest_ref_current", kDepends,
       [](const Things&) {
         cuguest_ref ref = CUGUEST_REF_INIT;
         return FirstOf({cuguest_ref_current(&ref)});
       }},
      {"cuguest_guard_enter cuguest_guard_reassert cuguest_guard_leave", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         const int code = cuguest_guard_enter(&guard, t.home.get(), CUGUEST_ELIDE, CUGUEST_HERE);
         if (code != 0) return FirstOf({code});
         const int reasserted = cuguest_guard_reassert(&guard);
         return FirstOf({reasserted, cuguest_guard_leave(&guard)});
       }},
      {"cuguest_guard_enter cuguest_guard_cleanup", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         return FirstOf(
             {cuguest_guard_enter(&guard, t.home.get(), CUGUEST_ALWAYS_PUSH, CUGUEST_HERE)});
       }},
      {"cuguest_guard_enter_ref cuguest_guard_move_to cuguest_guard_move_to_ref cuguest_guard_ref",
       kOk, WithRef([](const Things& t, const cuguest_ref& ref) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         const int code = cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE);
         if (code != 0) return FirstOf({code});
         const int there = cuguest_guard_move_to(&guard, t.other.get(), CUGUEST_HERE);
         cuguest_ref named = CUGUEST_REF_INIT;
         const int is_named = cuguest_guard_ref(&guard, &named);
         const int back = cuguest_guard_move_to_ref(&guard, &ref, CUGUEST_HERE);
         return FirstOf({there, is_named, back, cuguest_guard_leave(&guard)});
       })},
      {"cuguest_push_ref", kOk, WithRef([](const Things&, const cuguest_ref& ref) {
         const int code = cuguest_push_ref(&ref);
         return code != 0 ? FirstOf({code}) : FirstOf({cuguest_pop()});
       })},
      {"cuguest_push cuguest_pop", kOk,
       [](const Things& t) {
         const int code = cuguest_push(t.home.get());
         if (code != 0) return FirstOf({code});
         const int inner = cuguest_push(t.other.get());
         const int popped = inner == 0 ? cuguest_pop() : 0;
         return FirstOf({inner, popped, cuguest_pop()});
       }},
      {"cuguest_guard_enter: null", kOver,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         return FirstOf({cuguest_guard_enter(&guard, nullptr, CUGUEST_ELIDE, CUGUEST_HERE)});
       }},
      {"cuguest_no_context_guard_enter cuguest_no_context_guard_leave "
       "cuguest_no_context_guard_cleanup",
       kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_no_context_guard, none);
         const int code = cuguest_no_context_guard_enter(&none, CUGUEST_HERE);
         return code != 0 ? FirstOf({code}) : FirstOf({cuguest_no_context_guard_leave(&none)});
       }},
      {"cuguest_host_scope_enter cuguest_host_scope_leave cuguest_host_scope_cleanup", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         const int code = cuguest_guard_enter(&guard, t.home.get(), CUGUEST_ELIDE, CUGUEST_HERE);
         if (code != 0) return FirstOf({code});
         CUGUEST_SCOPE(cuguest_host_scope, host);
         const int left = cuguest_host_scope_enter(&host, CUGUEST_HERE);
         const int back = left == 0 ? cuguest_host_scope_leave(&host) : 0;
         const int reasserted = cuguest_guard_reassert(&guard);
         return FirstOf({left, back, reasserted, cuguest_guard_leave(&guard)});
       }},
      {"cuguest_capture_guard_enter cuguest_capture_guard_leave cuguest_capture_guard_cleanup", kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_capture_guard, guard);
         const int code =
             cuguest_capture_guard_enter(&guard, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE);
         return code != 0 ? FirstOf({code}) : FirstOf({cuguest_capture_guard_leave(&guard)});
       }},
      {"cuguest_thread_home_enter_ref cuguest_thread_home_check cuguest_thread_home_ref "
       "cuguest_thread_home_move_to cuguest_thread_home_leave cuguest_thread_home_cleanup",
       kOk, WithRef([](const Things& t, const cuguest_ref& ref) {
         CUGUEST_SCOPE(cuguest_thread_home, home);
         const int code = cuguest_thread_home_enter_ref(&home, &ref, 0, CUGUEST_HERE);
         if (code != 0) return FirstOf({code});
         cuguest_ref named = CUGUEST_REF_INIT;
         const int checked = cuguest_thread_home_check(&home);
         const int of = cuguest_thread_home_ref(&home, &named);
         const absl::StatusOr<cuguest_ref> other = RefTo(t.other.get());
         const int moved = other.ok() ? cuguest_thread_home_move_to(&home, &*other) : 0;
         const int left = cuguest_thread_home_leave(&home);
         return other.ok() ? FirstOf({checked, of, moved, left}) : other.status();
       })},
  };
}

// Entered, as `code` says; left.
absl::Status Left(cuguest_guard* guard, int code) {
  return code != 0 ? FirstOf({code}) : FirstOf({cuguest_guard_leave(guard)});
}
absl::Status Left(cuguest_thread_home* home, int code) {
  return code != 0 ? FirstOf({code}) : FirstOf({cuguest_thread_home_leave(home)});
}

std::vector<Call> WaysIn() {
  return {
      {"cuguest_guard_enter_stream", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         return Left(&guard,
                     cuguest_guard_enter_stream(&guard, t.stream.get(), CUGUEST_NO_DEVICE,
                                                CUGUEST_REFUSE, CUGUEST_ELIDE, CUGUEST_HERE));
       }},
      {"cuguest_guard_enter cuguest_guard_relax", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         const int code = cuguest_guard_enter(&guard, t.home.get(), CUGUEST_ELIDE, CUGUEST_HERE);
         if (code != 0) return FirstOf({code});
         const int relaxed = cuguest_guard_relax(&guard, CUGUEST_HERE);
         return FirstOf({relaxed, cuguest_guard_leave(&guard)});
       }},
      {"cuguest_guard_enter_pointer", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         return Left(&guard, cuguest_guard_enter_pointer(&guard, t.memories.pool, CUGUEST_CREATE,
                                                         CUGUEST_ALWAYS_PUSH, CUGUEST_HERE));
       }},
      {"cuguest_guard_enter_device", kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_guard, guard);
         return Left(&guard, cuguest_guard_enter_device(&guard, 0, CUGUEST_CREATE, CUGUEST_ELIDE,
                                                        CUGUEST_HERE));
       }},
      {"cuguest_guard_enter_acquired", kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         CUGUEST_SCOPE(cuguest_guard, guard);
         const int code = cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE);
         if (code != 0) return FirstOf({code});
         return Left(&guard,
                     cuguest_guard_enter_acquired(&guard, &acquired, CUGUEST_ELIDE, CUGUEST_HERE));
       }},
      {"cuguest_thread_home_enter_stream", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_thread_home, home);
         return Left(&home, cuguest_thread_home_enter_stream(&home, t.stream.get(),
                                                             CUGUEST_HOME_REENTERS, CUGUEST_HERE));
       }},
      {"cuguest_thread_home_enter_pointer", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_thread_home, home);
         return Left(&home,
                     cuguest_thread_home_enter_pointer(&home, t.memories.device, 0, CUGUEST_HERE));
       }},
      {"cuguest_thread_home_enter_device", kDepends,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_thread_home, home);
         return Left(&home, cuguest_thread_home_enter_device(&home, 0, CUGUEST_HOME_REENTERS,
                                                             CUGUEST_HERE));
       }},
  };
}

// Acquired or attached, as `code` says; released or detached again, as `release` does.
template <typename Storage>
absl::Status EndedBy(int (*release)(Storage*), Storage* storage, int code) {
  return code != 0 ? FirstOf({code}) : FirstOf({release(storage)});
}

std::vector<Call> Holders() {
  return {
      {"cuguest_acquire_on cuguest_acquired_release cuguest_acquired_cleanup", kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         return EndedBy(&cuguest_acquired_release, &acquired,
                        cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE));
       }},
      {"cuguest_primary_retain cuguest_primary_ref cuguest_primary_move cuguest_primary_release "
       "cuguest_primary_cleanup cuguest_init",
       kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_primary, primary);
         cuguest_primary moved;
         cuguest_ref ref = CUGUEST_REF_INIT;
         cuguest_init(&moved, sizeof(moved));
         const int code = cuguest_primary_retain(&primary, 0);
         if (code != 0) return FirstOf({code});
         const int named = cuguest_primary_ref(&primary, &ref);
         const int there = cuguest_primary_move(&moved, &primary);
         return FirstOf({named, there, cuguest_primary_release(&moved)});
       }},
      {"cuguest_primary_retain_if_active", kDepends,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_primary, primary);
         return EndedBy(&cuguest_primary_release, &primary,
                        cuguest_primary_retain_if_active(&primary, 0));
       }},
      {"cuguest_acquire_any cuguest_acquired_device", kDepends,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         const int code = cuguest_acquire_any(&acquired);
         int device = 0;
         return code != 0 ? FirstOf({code})
                          : FirstOf({cuguest_acquired_device(&acquired, &device)});
       }},
      {"cuguest_acquired_hold", StatusCode::kUnimplemented,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         const int code = cuguest_acquire_from_stream(&acquired, t.stream.get(), CUGUEST_NO_DEVICE,
                                                      CUGUEST_REFUSE);
         return code != 0 ? FirstOf({code}) : FirstOf({cuguest_acquired_hold(&acquired)});
       }},
      {"cuguest_primary_keeper_keep cuguest_primary_keeper_release cuguest_primary_keeper_cleanup",
       kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         CUGUEST_SCOPE(cuguest_primary_keeper, keeper);
         const int code = cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE);
         if (code != 0) return FirstOf({code});
         const int kept = cuguest_primary_keeper_keep(&keeper, &acquired);
         const int given =
             kept == 0 ? cuguest_primary_keeper_release(&keeper, CUGUEST_NO_DEVICE) : 0;
         return FirstOf({kept, given, cuguest_acquired_release(&acquired)});
       }},
      {"cuguest_release_kept_primary", kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         const int code = cuguest_acquire_on(&acquired, 0, CUGUEST_CREATE_AND_KEEP);
         const int released = cuguest_release_kept_primary(0);
         if (released == CUDA_ERROR_NOT_PERMITTED) {
           static_cast<void>(cuguest_release_kept_primary(0));  // still kept
         }
         const int given = code == 0 ? cuguest_acquired_release(&acquired) : 0;
         return FirstOf({code, released, given});
       }},
      {"cuguest_is_initialized", kOk,
       [](const Things&) { return Holds(cuguest_is_initialized() == 1); }},
      {"cuguest_free_memory", kOk,
       [](const Things&) {
         return FirstOf({cuguest_free_memory(0, CUGUEST_CREATE, nullptr, nullptr)});
       }},
      {"cuguest_peer_access_check", StatusCode::kUnimplemented,
       [](const Things&) { return FirstOf({cuguest_peer_access_check(0, 0)}); }},
      {"cuguest_acquire_on: refused", kDepends,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         return FirstOf({cuguest_acquire_on(&acquired, 0, CUGUEST_REFUSE)});
       }},
      {"cuguest_acquire_from_pointer cuguest_acquired_ref cuguest_acquired_source", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         const int code =
             cuguest_acquire_from_pointer(&acquired, t.memories.device, CUGUEST_REFUSE);
         if (code != 0) return FirstOf({code});
         cuguest_ref ref = CUGUEST_REF_INIT;
         const int named = cuguest_acquired_ref(&acquired, &ref);
         return FirstOf({named, cuguest_acquired_source(&acquired) != CUGUEST_FROM_POINTER});
       }},
      {"cuguest_acquire_from_pointer: memory that no context owns", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         return FirstOf({cuguest_acquire_from_pointer(&acquired, t.memories.pool, CUGUEST_CREATE)});
       }},
      {"cuguest_acquire_from_stream cuguest_acquired_move", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         CUGUEST_SCOPE(cuguest_acquired, moved);
         const int code = cuguest_acquire_from_stream(&acquired, t.stream.get(), CUGUEST_NO_DEVICE,
                                                      CUGUEST_REFUSE);
         return code != 0 ? FirstOf({code}) : FirstOf({cuguest_acquired_move(&moved, &acquired)});
       }},
      {"cuguest_acquire_from_stream: a special one", kOk,
       [](const Things&) {
         CUGUEST_SCOPE(cuguest_acquired, acquired);
         return FirstOf({cuguest_acquire_from_stream(&acquired, nullptr, 0, CUGUEST_CREATE)});
       }},
      {"cuguest_shared_context_create cuguest_shared_context_detach "
       "cuguest_shared_context_cleanup",
       kOk,
       [](const Things&) -> Outcome {
         CUGUEST_SCOPE(cuguest_shared_context, shared);
         const int code = cuguest_shared_context_create(&shared, 0, 0);
         if (code != 0) return FirstOf({code});
         cuguest_ref ref = CUGUEST_REF_INIT;
         const int named = cuguest_shared_context_ref(&shared, &ref);
         Outcome outcome = FirstOf({named, cuguest_shared_context_detach(&shared)});
         outcome.end_context = [context = ref.context] { OK(RAW(cuCtxDestroy)(context)); };
         return outcome;
       }},
      {"cuguest_shared_context_attach cuguest_shared_context_ref cuguest_shared_context_move", kOk,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_shared_context, shared);
         CUGUEST_SCOPE(cuguest_shared_context, moved);
         const int code = cuguest_shared_context_attach(&shared, t.home.get());
         if (code != 0) return FirstOf({code});
         cuguest_ref ref = CUGUEST_REF_INIT;
         const int named = cuguest_shared_context_ref(&shared, &ref);
         const int there = cuguest_shared_context_move(&moved, &shared);
         return FirstOf({named, there, cuguest_shared_context_detach(&moved)});
       }},
  };
}

// A value is memory of its context, which is over in none of these calls: what is given up can be
// freed all the same.
int Allocate(const cuguest_ref*, void* value, void*) {
  return RAW(cuMemAlloc)(static_cast<CUdeviceptr*>(value), 64);
}
void Free(void* value, void*) {
  static_cast<void>(RAW(cuMemFree)(*static_cast<CUdeviceptr*>(value)));
}
const cuguest_per_context_type kMemory = {
    sizeof(kMemory), sizeof(CUdeviceptr), 0, &Allocate, &Free, &Free, nullptr};

// use(cache, ref), where memory was allocated in `home`, and nothing is pinned.
template <typename Use>
std::function<Outcome(const Things&)> WithCache(const Use& use) {
  return WithRef([use](const Things&, const cuguest_ref& ref) {
    CUGUEST_SCOPE(cuguest_per_context, cache);
    CUGUEST_SCOPE(cuguest_per_context_pin, pin);
    const int code = cuguest_per_context_get(&cache, &kMemory, &ref, &pin);
    if (code != 0) return FirstOf({code});
    return FirstOf({cuguest_per_context_unpin(&pin), use(&cache, ref)});
  });
}

std::vector<Call> Values() {
  using Cache = cuguest_per_context*;
  return {
      {"cuguest_per_context_get cuguest_per_context_find cuguest_per_context_value "
       "cuguest_per_context_unpin cuguest_per_context_pin_cleanup cuguest_per_context_size",
       kOk, WithCache([](Cache cache, const cuguest_ref& ref) {
         CUGUEST_SCOPE(cuguest_per_context_pin, pin);
         const int code = cuguest_per_context_find(cache, &ref, &pin);
         if (code != 0) return code;
         const bool is_there = cuguest_per_context_value(&pin) != nullptr;
         return is_there && cuguest_per_context_size(cache) == 1 ? 0 : 1;
       })},
      {"cuguest_per_context_get: a destroyed context", kOver,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_per_context, cache);
         CUGUEST_SCOPE(cuguest_per_context_pin, pin);
         const cuguest_ref ref = {sizeof(ref), t.ended.get(), t.ended.id()};
         return FirstOf({cuguest_per_context_get(&cache, &kMemory, &ref, &pin)});
       }},
      {"cuguest_per_context_forget cuguest_per_context_close cuguest_per_context_cleanup", kOk,
       WithCache([](Cache cache, const cuguest_ref& ref) {
         const int code = cuguest_per_context_forget(cache, &ref);
         return code != 0 ? code : cuguest_per_context_close(cache);
       })},
      {"cuguest_per_context_forget_destroyed", StatusCode::kNotFound,
       [](const Things& t) {
         CUGUEST_SCOPE(cuguest_per_context, cache);
         const cuguest_ref ref = {sizeof(ref), t.ended.get(), t.ended.id()};
         return FirstOf({cuguest_per_context_forget_destroyed(&cache, &ref)});
       }},
      {"cuguest_per_context_forget_all cuguest_per_context_drop_dead", kOk,
       WithCache([](Cache cache, const cuguest_ref&) {
         size_t dead = 1, all = 0;
         const int dropped = cuguest_per_context_drop_dead(cache, &dead);
         const int forgot = cuguest_per_context_forget_all(cache, &all);
         return dropped != 0 || forgot != 0 ? dropped + forgot : static_cast<int>(dead + all != 1);
       })},
  };
}

}  // namespace

const std::vector<Call>& CallsOfC() {
  static const auto& calls =
      *new std::vector<Call>(Joined({Guards(), WaysIn(), Holders(), Values()}));
  return calls;
}

}  // namespace cuguest_faults
