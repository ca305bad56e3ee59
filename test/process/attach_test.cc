// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared contexts in processes that differ from the usual one: with drivers below CUDA 12.0, where
// contexts have no ids and are told apart by handle alone, with ids near their end, without file
// descriptors, and with a system call filter.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/driver.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::SharedContext;
using cuguest_test::MakeContext;
using Owner = SharedContext::Owner;

int g_mincore_error = 0;
int g_mincore_calls = 0;

SharedContext Create() { return SharedContext::Create(Device::Borrow(0)); }
SharedContext Attach(CUcontext context) { return SharedContext::Attach(context); }

void Destroy(CUcontext context) { CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS); }

void CreateAtAHandleThatWasAttached() {
  Sim::SetDriverVersion(11080);
  const CUcontext old = MakeContext();
  CHECK(Attach(old).Release().ok());
  Destroy(old);
  SharedContext made = Create();
  CHECK(made.get() == old);
  CHECK(made.owner() == Owner::kShared);
  CHECK(made.use_count() == 1);
  CHECK(Attach(old).use_count() == 2);
  CHECK(made.Release().ok());
  CHECK(Sim::Live().contexts == 0);
}

void CreateAtAHandleThatIsStillAttached() {
  Sim::SetDriverVersion(11080);
  const CUcontext old = MakeContext();
  SharedContext stale = Attach(old);
  Destroy(old);
  SharedContext made = Create();
  CHECK(made.get() == old);
  CHECK(made.use_count() == 1);
  SharedContext joined = Attach(old);
  CHECK(joined.owner() == Owner::kShared);
  CHECK(made.use_count() == 2);
  CHECK(stale.use_count() == 1);
  stale = SharedContext();
  CHECK(made.use_count() == 2);
  CHECK(made.Release().ok());
  CHECK(Sim::Live().contexts == 1);
  CHECK(joined.Release().ok());
  CHECK(Sim::Live().contexts == 0);
}

// The host destroyed a context that was made for sharing, and its holder lets go after another
// one, made for sharing as well, has the handle.
void AStaleHolderLeavesTheNewContextAlone() {
  Sim::SetDriverVersion(11080);
  SharedContext stale = Create();
  const CUcontext handle = stale.get();
  Destroy(handle);
  SharedContext made = Create();
  CHECK(made.get() == handle);
  stale = SharedContext();
  CHECK(Sim::Live().contexts == 1);
  CHECK(Attach(handle).use_count() == 2);
  CHECK(made.Release().ok());
  CHECK(Sim::Live().contexts == 0);
}

void ManyContextsAtOneHandle() {
  Sim::SetDriverVersion(11080);
  for (int i = 0; i < 100; ++i) {
    const CUcontext old = MakeContext();
    CHECK(Attach(old).Release().ok());
    Destroy(old);
    SharedContext made = Create();
    CHECK(made.owner() == Owner::kShared);
    CHECK(made.Release().ok());
  }
  CHECK(Sim::Live().contexts == 0);
}

// Contexts at one handle, up to the last id that there is.
void IdsNearTheirEnd() {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  constexpr int kContexts = 4;
  Sim::SetNextContextId(kLast - kContexts + 1);
  cuguest::PerContext<std::uint64_t> values;
  std::vector<SharedContext> over;
  std::vector<ContextRef> refs;
  CUcontext context = nullptr;
  for (int i = 0; i < kContexts; ++i) {
    if (i != 0) Destroy(context);
    context = MakeContext();
    over.push_back(Attach(context));
    CHECK(over.back().ok() && over.back().use_count() == 1);
    refs.push_back(over.back().context());
    CHECK(refs.back().get() == refs.front().get());
    CHECK(
        *values
             .GetOrMake(refs.back(),
                        [](const ContextRef& of) { return absl::StatusOr<std::uint64_t>(of.id()); })
             .value() == refs.back().id());
    CHECK(cuguest::ContextGuard(refs.back()).ok());
  }
  CHECK(refs.back().id() == kLast);
  for (int i = 0; i < kContexts - 1; ++i) {
    CHECK(SharedContext::Attach(refs[static_cast<std::size_t>(i)]).error().code ==
          CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(over[static_cast<std::size_t>(i)].use_count() == 1);
  }
  CHECK(Attach(context).use_count() == 2);
  // Were ids to begin again, the next context at the handle is refused, and left alone.
  Destroy(context);
  Sim::SetNextContextId(1);
  CHECK(MakeContext() == context);
  CHECK(Attach(context).error().code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  over.clear();
  CHECK(ContextRef::Borrow(context).IsAlive());
  Destroy(context);
}

// While it lives, nobody opens a file.
class NoDescriptors {
 public:
  NoDescriptors() {
    CHECK(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit none = {0, before_.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { CHECK(setrlimit(RLIMIT_NOFILE, &before_) == 0); }

 private:
  rlimit before_ = {};
};

// The driver cannot be loaded then, and is once there are some again.
void FirstUseWithoutDescriptors() {
  {
    const NoDescriptors exhausted;
    for (int i = 0; i < 2; ++i) {
      CHECK(Attach(reinterpret_cast<CUcontext>(0x1000)).error().reason ==
            cuguest::Error::Reason::kNoDriver);
      CHECK(Create().error().reason == cuguest::Error::Reason::kNoDriver);
      CHECK(cuguest::ContextGuard(reinterpret_cast<CUcontext>(0x1000)).result() ==
            CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
      const absl::Status status = cuguest::Driver::GetInitialized().status();
      CHECK(cuguest::ProblemOf(status) == cuguest::Driver::Problem::kNoLibrary);
      CHECK(absl::StrContains(status.message(), std::strerror(EMFILE)));
    }
  }
  SharedContext made = Create();
  CHECK(made.ok());
  CHECK(made.Release().ok());
}

// The registry is found and attached to without opening a file.
void AttachWithoutDescriptors() {
  const CUcontext theirs = MakeContext();
  {
    const NoDescriptors exhausted;
    SharedContext attached = Attach(theirs);
    CHECK(attached.ok());
    SharedContext made = Create();
    CHECK(made.ok());
    CHECK(made.Release().ok());
    CHECK(attached.Release().ok());
  }
  Destroy(theirs);
}

// A filter that answers EPERM says nothing of the address.
void AnAddressThatCannotBeAskedAboutIsNotRefused() {
  const CUcontext theirs = MakeContext();
  for (const int error : {EPERM, ENOSYS, EAGAIN}) {
    g_mincore_error = error;
    const int calls = g_mincore_calls;
    SharedContext attached = Attach(theirs);
    CHECK(g_mincore_calls > calls || error != EPERM);  // known from the second time on
    CHECK(attached.Release().ok());
  }
  g_mincore_error = EPERM;
  for (const std::uintptr_t value : {0x0, 0x8, 0x1001}) {  // needs no question
    CHECK(SharedContext::Attach(reinterpret_cast<CUcontext>(value)).error().code ==
          CUDA_ERROR_INVALID_VALUE);
  }
  Destroy(theirs);
}

void AnAddressWithoutMemoryIsRefused() {
  const CUcontext theirs = MakeContext();
  g_mincore_error = ENOMEM;
  CHECK(SharedContext::Attach(theirs).error().reason == cuguest::Error::Reason::kNoContext);
  CHECK(g_mincore_calls == 1);
  Destroy(theirs);
}

}  // namespace

// Found before the C library's.
extern "C" int mincore(void*, size_t, unsigned char*) noexcept {
  ++g_mincore_calls;
  if (g_mincore_error == 0) return 0;
  errno = g_mincore_error;
  return -1;
}

int main(int argc, char** argv) {
  using cuguest_test::On;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"create_at_a_handle_that_was_attached",
           &CreateAtAHandleThatWasAttached,
           {},
           0,
           On::kSimulation},
          {"create_at_a_handle_that_is_still_attached",
           &CreateAtAHandleThatIsStillAttached,
           {},
           0,
           On::kSimulation},
          {"a_stale_holder_leaves_the_new_context_alone",
           &AStaleHolderLeavesTheNewContextAlone,
           {},
           0,
           On::kSimulation},
          {"many_contexts_at_one_handle", &ManyContextsAtOneHandle, {}, 0, On::kSimulation},
          {"ids_near_their_end", &IdsNearTheirEnd, {}, 0, On::kSimulation},
          {"first_use_without_descriptors", &FirstUseWithoutDescriptors, {}, 0, On::kSimulation},
          {"attach_without_descriptors", &AttachWithoutDescriptors, {}, 0, On::kSimulation},
          {"an_address_that_cannot_be_asked_about_is_not_refused",
           &AnAddressThatCannotBeAskedAboutIsNotRefused},
          {"an_address_without_memory_is_refused", &AnAddressWithoutMemoryIsRefused},
      });
}
