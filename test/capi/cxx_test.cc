// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuguest/cxx.h from C++11 without <cuda.h>, exceptions, RTTI and the C++ library.

#include "cuguest/cxx.h"

#ifdef CUDA_VERSION
#error "cuguest/cxx.h includes <cuda.h>"
#endif
#if defined(__GLIBCXX__) || defined(_LIBCPP_VERSION)
#error "cuguest/cxx.h includes the C++ library"
#endif

#ifndef _WIN32
#include <dlfcn.h>
#endif

#include "test/capi/c_test.h"

namespace {

constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kIllegalState = 401;

struct Driver {
  template <typename Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library, name));
    CHECK(*function != nullptr);
  }

  Driver() {
    if (library == nullptr) _exit(SKIPPED);
    Find("cuInit", &init);
    Find("cuCtxCreate_v2", &create);
    Find("cuCtxPushCurrent_v2", &push);
    Find("cuCtxPopCurrent_v2", &pop);
    Find("cuCtxGetCurrent", &get);
    Find("cuDevicePrimaryCtxGetState", &state);
    if (init(0) != 0) _exit(SKIPPED);
  }
  CUctx_st* Current() const {
    CUctx_st* context = nullptr;
    CHECK(get(&context) == 0);
    return context;
  }
  CUctx_st* Make() const {
    CUctx_st* context = nullptr;
    CHECK(create(&context, 0, 0) == 0 && pop(&context) == 0);
    return context;
  }
  bool PrimaryIsActive() const {
    unsigned flags = 0;
    int active = 0;
    CHECK(state(0, &flags, &active) == 0);
    return active != 0;
  }

  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned);
  int (*create)(CUctx_st**, unsigned, int);
  int (*push)(CUctx_st*);
  int (*pop)(CUctx_st**);
  int (*get)(CUctx_st**);
  int (*state)(int, unsigned*, int*);
};

void GuardEndsWithItsBlock() {
  const Driver driver;
  CUctx_st* const host = driver.Make();
  CUctx_st* const own = driver.Make();
  CHECK(driver.push(host) == 0);
  {
    cuguest::CGuard guard(own);
    CHECK(guard.ok() && guard.code() == 0 && driver.Current() == own);
    CHECK(driver.push(host) == 0);
    CHECK(cuguest_guard_reassert(guard.get()) == 0 && driver.Current() == own);
    CHECK(guard.ref().context == own);
    const cuguest::CGuard again(guard.ref());
    CHECK(again.ok());
  }
  CHECK(driver.Current() == host);
  {
    cuguest::CGuard guard(own, CUGUEST_ALWAYS_PUSH);
    CHECK(cuguest_guard_leave(guard.get()) == 0 && driver.Current() == host);
  }
  const unsigned long long incidents = cuguest_incident_count(-1);
  CHECK(driver.Current() == host && incidents == 1);
  cuguest::CGuard refused(static_cast<CUctx_st*>(nullptr));
  CHECK(!refused.ok() && refused.code() == kInvalidContext && driver.Current() == host);
  CHECK(refused.ref().context == nullptr);
}

void HolderIsMoved() {
  const Driver driver;
  cuguest::CPrimary nothing;
  CHECK(nothing.code() == kIllegalState && nothing.ref().context == nullptr);
  {
    cuguest::CPrimary first(&cuguest_primary_retain, 0);
    CHECK(first.ok() && driver.PrimaryIsActive());
    CUctx_st* const context = first.ref().context;
    cuguest::CPrimary second(static_cast<cuguest::CPrimary&&>(first));
    CHECK(second.ok() && first.code() == kIllegalState && first.ref().context == nullptr);
    cuguest::CGuard guard(second.ref());
    CHECK(guard.ok() && driver.Current() == context);
    first = static_cast<cuguest::CPrimary&&>(second);
    CHECK(first.ok() && !second.ok() && first.ref().context == context);
    nothing = static_cast<cuguest::CPrimary&&>(first);
  }
  CHECK(nothing.ok() && driver.PrimaryIsActive());
  cuguest::CPrimary& same = nothing;
  nothing = static_cast<cuguest::CPrimary&&>(same);
  CHECK(nothing.ok());
  nothing = cuguest::CPrimary(&cuguest_primary_retain, 999);
  CHECK(nothing.code() == kInvalidDevice && !driver.PrimaryIsActive());
  nothing = cuguest::CPrimary(&cuguest_primary_retain, 0);
  CHECK(nothing.ok() && cuguest_primary_release(nothing.get()) == 0);
  CHECK(nothing.code() == kIllegalState && !driver.PrimaryIsActive());
  {
    const cuguest::CPrimary held(&cuguest_primary_retain, 0);
    CHECK(held.ok() && driver.PrimaryIsActive());
  }
  CHECK(!driver.PrimaryIsActive());
}

void EveryOtherBeginsAndEnds() {
  const Driver driver;
  CUctx_st* const host = driver.Make();
  CUctx_st* const own = driver.Make();
  CHECK(driver.push(host) == 0);
  {
    cuguest::CSharedContext shared(&cuguest_shared_context_attach, own);
    cuguest::CAcquired acquired(&cuguest_acquire_on, 0, CUGUEST_REFUSE);
    CHECK(shared.ok() && shared.ref().context == own);
    CHECK(acquired.ok() && acquired.ref().context == host);
    cuguest_ref own_ref = shared.ref();
    cuguest::CThreadHome home(&cuguest_thread_home_enter_ref, &own_ref, 0, CUGUEST_HERE);
    CHECK(home.ok() && driver.Current() == own);
    cuguest::CHostScope scope(&cuguest_host_scope_enter, CUGUEST_HERE);
    CHECK(scope.ok() && driver.Current() == host);
    cuguest::CNoContextGuard none(&cuguest_no_context_guard_enter, CUGUEST_HERE);
    CHECK(none.ok() && driver.Current() == nullptr);
    cuguest::CCaptureGuard mode(&cuguest_capture_guard_enter, CUGUEST_CAPTURE_RELAXED,
                                CUGUEST_HERE);
    CHECK(mode.ok());
  }
  CHECK(driver.Current() == host && cuguest_incident_count(-1) == 0);
}

struct Told {
  int count = 0;
  int line = 0;
};
void Tell(const cuguest_incident* incident, void* user) {
  Told* const told = static_cast<Told*>(user);
  ++told->count;
  told->line = incident->line;
}

void ListenerHearsThePlaceOfTheCall() {
  const Driver driver;
  Told told;
  CUctx_st* const own = driver.Make();
  int line = 0;
  for (int i = 0; i < 2; ++i) {
    cuguest::CIncidentListener listener(&cuguest_incident_listener_register, &Tell, &told);
    CHECK(listener.ok());
    cuguest::CGuard guard(own);
    line = __LINE__ - 1;
    CHECK(driver.push(own) == 0);
    if (i == 1) CHECK(cuguest_incident_listener_remove(listener.get()) == 0);
  }
  CHECK(told.count == 1 && told.line == line && cuguest_incident_count(-1) == 2);
}

const test_case kCases[] = {
    {"guard_ends_with_its_block", &GuardEndsWithItsBlock},
    {"holder_is_moved", &HolderIsMoved},
    {"every_other_begins_and_ends", &EveryOtherBeginsAndEnds},
    {"listener_hears_the_place_of_the_call", &ListenerHearsThePlaceOfTheCall},
};

}  // namespace

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, static_cast<int>(sizeof(kCases) / sizeof(kCases[0])));
}
