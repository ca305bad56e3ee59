// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of the two files in libraries of one process, beside the shared library that this program
// is linked with: one as it is, one compiled in another way, one of another version and namespace.

#include <algorithm>
#include <string>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/incident.h"
#include "cuguest/shared_context.h"
#include "cuguest/testing/stack_probe.h"
#include "test/process/plugin.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest::testing::StackProbe;
using cuguest_test::MakeContext;
using cuguest_test::Plugin;
using cuguest_test::Watch;

const std::vector<std::string> kCopies = {"two_files/copy", "two_files/copy_edited",
                                          "two_files/copy_in_another_way"};

CUresult Call(const Plugin& copy, CUcontext context, void (*callee)(void*), void* argument) {
  return copy.Call<CUresult (*)(CUcontext, void (*)(void*), void*)>("PluginCall")(context, callee,
                                                                                  argument);
}
unsigned long long Incidents(const Plugin& copy) {
  return copy.Call<unsigned long long (*)()>("PluginIncidents")();
}

// The scopes that are still to be entered, the innermost one last.
struct Nest {
  std::vector<const Plugin*> copies;
  std::size_t next = 0;
};

// The innermost callee leaves an entry too many, of which only the guard around it reports.
void EnterNext(void* data) {
  auto& nest = *static_cast<Nest*>(data);
  if (nest.next == nest.copies.size()) {
    CHECK(RAW(cuCtxPushCurrent)(MakeContext()) == CUDA_SUCCESS);
    return;
  }
  const Plugin& copy = *nest.copies[nest.next++];
  CHECK(Call(copy, MakeContext(), &EnterNext, &nest) == CUDA_SUCCESS);
}

void CopiesNestInEveryOrder() {
  std::vector<std::string> names = kCopies;
  do {
    std::vector<std::unique_ptr<Plugin>> copies;
    Nest nest;
    for (const std::string& name : names) copies.push_back(std::make_unique<Plugin>(name));
    for (const auto& copy : copies) nest.copies.push_back(copy.get());
    const CUcontext ours = MakeContext();
    const StackProbe before = StackProbe::Take();
    {
      const cuguest::ContextGuard guard(ours);
      CHECK(guard.ok());
      EnterNext(&nest);
    }
    CHECK(before.Difference(StackProbe::Take()).empty());
    CHECK(cuguest::IncidentCount() == 0);
    for (const auto& copy : copies) CHECK(Incidents(*copy) == (copy == copies.back() ? 1 : 0));
  } while (std::next_permutation(names.begin(), names.end()));
}

void CopiesCountTogether() {
  CHECK(MakeContext() != nullptr);
  cuguest_test::DetachInEveryOrder(kCopies);
}

void InstalledLibraryCountsWithEachCopy() {
  CHECK(MakeContext() != nullptr);
  for (const std::string& name : kCopies) {
    const Plugin copy(name);
    void* const made = copy.Create();
    CHECK(made != nullptr);
    cuguest::SharedContext attached = cuguest::SharedContext::Attach(copy.Get(made));
    CHECK(attached.ok() && attached.use_count() == 2 && copy.UseCount(made) == 2);
    const Watch watch(attached.get());
    CHECK(copy.Detach(made));
    CHECK(watch.IsAlive() && attached.use_count() == 1);
    CHECK(attached.Release().ok());
    CHECK(!watch.IsAlive());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"copies_nest_in_every_order", &CopiesNestInEveryOrder},
          {"copies_count_together", &CopiesCountTogether},
          {"installed_library_counts_with_each_copy", &InstalledLibraryCountsWithEachCopy},
      });
}
