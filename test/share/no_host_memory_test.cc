// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No memory of the host for one more shared context, and for one more value of a PerContext, where
// there are few and where there are many.

#include <cuda.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/support/test.h"

// The registry's slots are in pages that mmap() gives; the entries of a PerContext are zeros, by
// calloc(). A sanitizer has functions of its own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kCanRefuse = true;
thread_local bool t_has_memory = true;
extern "C" void* __libc_calloc(std::size_t count, std::size_t bytes);
extern "C" void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return t_has_memory ? __libc_calloc(count, bytes) : nullptr;
}
extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                      off_t offset) noexcept {
  if (!t_has_memory && (flags & MAP_ANONYMOUS) != 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
#else
constexpr bool kCanRefuse = false;
bool t_has_memory = true;
#endif

BOOST_AUTO_TEST_SUITE(no_host_memory, *cuguest_test::OnlySim())

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::PerContext;
using cuguest::SharedContext;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;

auto CanRefuse() {
  return cuguest_test::OnlyIf([] { return kCanRefuse; }, "a sanitizer has its own allocator");
}

absl::StatusOr<int> MakeValue(const ContextRef&) { return 1; }

// Contexts, each of them attached, with a value.
struct Process {
  explicit Process(int count) {
    for (int i = 0; i < count; ++i) {
      const CUcontext context = contexts.emplace_back().get();
      shared.push_back(SharedContext::Attach(context));
      BOOST_TEST_REQUIRE(shared.back().ok());
      BOOST_TEST_REQUIRE(values.GetOrMake(context, &MakeValue).ok());
    }
  }

  std::deque<OwnContext> contexts;
  std::vector<SharedContext> shared;
  PerContext<int> values;
};

}  // namespace

BOOST_AUTO_TEST_CASE(attach_without_memory_loses_nothing, *CanRefuse()) {
  for (const int count : {1, 16, 100}) {
    Process process(count);
    std::deque<OwnContext> more(20);  // than the registry has room for without memory
    std::vector<SharedContext> attached;
    int refused = 0;
    t_has_memory = false;
    for (const OwnContext& context : more) {
      attached.push_back(SharedContext::Attach(context.get()));
      const bool has_room = attached.back().ok();
      if (!has_room) {
        ++refused;
        BOOST_TEST(attached.back().error().code == CUDA_ERROR_OUT_OF_MEMORY);
        BOOST_TEST(attached.back().use_count() == 0U);
      }
      const auto value = process.values.GetOrMake(context.get(), &MakeValue);
      BOOST_TEST((value.status().code() == absl::StatusCode::kResourceExhausted));
      BOOST_TEST(ContextGuard(context.get()).ok());
    }
    BOOST_TEST(refused > 0);
    // What was there needs none.
    for (int i = 0; i < count; ++i) {
      const CUcontext context = process.contexts[i].get();
      const SharedContext again = SharedContext::Attach(context);
      BOOST_TEST(again.ok());
      BOOST_TEST(again.use_count() == 2U);
      BOOST_TEST(process.values.GetOrMake(context, &MakeValue).ok());
    }
    BOOST_TEST(GetStack().empty());
    t_has_memory = true;
    for (std::size_t i = 0; i < more.size(); ++i) {
      if (!attached[i].ok()) attached[i] = SharedContext::Attach(more[i].get());
      BOOST_TEST(attached[i].use_count() == 1U);
      BOOST_TEST(process.values.GetOrMake(more[i].get(), &MakeValue).ok());
    }
    BOOST_TEST(process.values.size() == count + more.size());
    t_has_memory = false;  // no end needs any
    for (SharedContext& context : attached) BOOST_TEST(context.Release().ok());
    for (SharedContext& context : process.shared) BOOST_TEST(context.Release().ok());
    BOOST_TEST(process.values.ForgetAll() == count + more.size());
    t_has_memory = true;
    for (const OwnContext& context : process.contexts) {
      BOOST_TEST(ContextRef::Borrow(context.get()).Check() == CUDA_SUCCESS);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
