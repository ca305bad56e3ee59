// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernel is asked for. That the two fences are enough is explored by
// test/schedules/per_context_test.cc.

#include "lib/core/concurrency.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "test/support/scenario.h"
#include "test/support/system_calls.h"

namespace {

using cuguest::internal::AsymmetricFence;
using cuguest::internal::HasEnded;
using cuguest::internal::KernelThread;

// What `work` returns in a forked child.
template <typename Work>
int InAChild(const Work& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

void AHeavyFenceIsMadeWhereTheKernelHasAlwaysRefused() {
  CHECK(InAChild([] {
          if (!cuguest_test::RefuseMembarrier()) return 2;
          AsymmetricFence::Prepare();
          return AsymmetricFence::Heavy() ? 0 : 1;
        }) == 0);
}

void AHeavyOneSaysIfTheKernelHasBegunToRefuse() {
  CHECK(InAChild([] {
          AsymmetricFence::Prepare();
          if (!AsymmetricFence::Heavy() || !cuguest_test::RefuseMembarrier()) return 2;
          return AsymmetricFence::Heavy() ? 1 : 0;
        }) == 0);
}

void AForkedChildCanMakeHeavyOnes() {
  AsymmetricFence::Prepare();
  CHECK(InAChild([] { return AsymmetricFence::Heavy() ? 0 : 1; }) == 0);
}

void AThreadHasEndedWhenItHas() {
  int number = 0;
  std::thread([&] {
    number = KernelThread();
    CHECK(!HasEnded(number));
  }).join();
  CHECK(number != KernelThread());
  // The kernel's last of it may be a moment later than join().
  for (int i = 0; i < 1000 && !HasEnded(number); ++i) usleep(1000);
  CHECK(HasEnded(number));
  CHECK(!HasEnded(KernelThread()));
}

void AThreadOfTheParentHasEndedInAChild() {
  const int parents = KernelThread();
  CHECK(InAChild([&] {
          if (HasEnded(KernelThread())) return 2;
          return HasEnded(parents) ? 0 : 1;
        }) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"a_heavy_fence_is_made_where_the_kernel_has_always_refused",
           &AHeavyFenceIsMadeWhereTheKernelHasAlwaysRefused,
           {},
           0,
           cuguest_test::On::kAnyDriver,
           {},
           &cuguest_test::SkipWithoutFilters},
          {"a_heavy_one_says_if_the_kernel_has_begun_to_refuse",
           &AHeavyOneSaysIfTheKernelHasBegunToRefuse,
           {},
           0,
           cuguest_test::On::kAnyDriver,
           {},
           &cuguest_test::SkipWithoutFilters},
          {"a_forked_child_can_make_heavy_ones", &AForkedChildCanMakeHeavyOnes, {}},
          {"a_thread_has_ended_when_it_has", &AThreadHasEndedWhenItHas, {}},
          {"a_thread_of_the_parent_has_ended_in_a_child", &AThreadOfTheParentHasEndedInAChild, {}},
      });
}
