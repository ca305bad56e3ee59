// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An audit whose thread cannot read while the callable runs: an allocator of the program's holds it
// up.

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "cuguest/testing/audit.h"
#include "test/support/test.h"

using cuguest::testing::Audit;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TheDriver;

namespace {

// The only thread that may allocate; 0: all may.
std::atomic<pid_t> allocates{0};

void PushAndPop(CUcontext context, int times) {
  for (int i = 0; i < times; ++i) {
    TheDriver().CtxPushCurrent(context);
    TheDriver().CtxPopCurrent(&context);
  }
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  for (pid_t thread = allocates.load(); thread != 0 && thread != gettid();
       thread = allocates.load())
    usleep(1000);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

BOOST_AUTO_TEST_CASE(events_that_are_not_read_are_data_loss) {
  const OwnContext own;
  SetStack({own.get()});
  const absl::Status lost = Audit([&] {
                              allocates = gettid();
                              PushAndPop(own.get(), 20000);
                              allocates = 0;
                            }).status();
  BOOST_TEST((lost.code() == absl::StatusCode::kDataLoss), lost.ToString());

  // The next audit is complete.
  const auto findings = Audit([&] {
    PushAndPop(own.get(), 20000);
    TheDriver().CtxPushCurrent(own.get());
  });
  BOOST_REQUIRE_MESSAGE(findings.ok(), findings.status().ToString());
  BOOST_REQUIRE(findings->size() == 1u);
  BOOST_TEST(findings->front().kind == "leaked-push");
  BOOST_TEST(findings->front().culprit_object == cuguest::testing::kAuditedCallable);
  SetStack({});
}
