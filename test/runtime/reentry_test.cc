// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No lock of cuguest's is held across a driver call, an allocation or the loading of a library, by
// any function of the bridge, of memory, streams and device code, and of the library handles:
// test/headers/calls_test.py sees to it that the tables have each. The operations of tier 2 are
// process/reentry_test.cc's.

#include <csignal>
#include <cstring>

#include "cuguest/objects/linker.h"
#include "test/libraries/library_calls.h"
#include "test/objects/code/links.h"
#include "test/runtime/calls.h"
#include "test/support/held_locks.h"
#include "test/support/reentry.h"

namespace {

using namespace cuguest_runtime_test;
using cuguest_test::OnlySim;
using cuguest_test::Reentry;

constexpr unsigned kSeconds = 30;  // of one call

// The call that is being made, for a program that hangs.
const char* g_call = "";

void OnAlarm(int) {
  for (const char* text : {"hangs: ", g_call, "\n"}) {
    static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text)));
  }
  signal(SIGALRM, SIG_DFL);
  raise(SIGALRM);
}

// With nothing current, the things' context, and another one.
template <typename Call, typename Things>
void MakeAll(const std::vector<Call>& calls, const Things& things) {
  const OwnContext bystander;
  signal(SIGALRM, &OnAlarm);
  for (const std::vector<CUcontext>& stack :
       {std::vector<CUcontext>{}, {things.home.get()}, {things.other.get()}}) {
    for (const Call& call : calls) {
      cuguest_test::SetStack(stack);
      g_call = call.names;
      BOOST_TEST_CONTEXT(call.names) {
        const std::optional<absl::StatusCode> expected = call.expected;
        absl::Status status;
        {
          const Reentry reentry(bystander.get(), kSeconds);
          status = call.make(things).status;
        }
        if (expected.has_value()) BOOST_TEST((status.code() == *expected), status.ToString());
      }
      cuguest_test::SetStack({});
    }
  }
  BOOST_TEST(Reentry::Count() > 0);
  BOOST_TEST_MESSAGE(Reentry::Count() << " driver calls so far");
  if (cuguest_test::SeesLocks()) BOOST_TEST(cuguest_test::LocksTaken() > 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reentry, *OnlySim())

BOOST_AUTO_TEST_CASE(bridge_memory_and_streams) { MakeAll(Calls(), Things()); }

BOOST_AUTO_TEST_CASE(what_the_runtime_refuses) {
  MakeAll(CallsThatTheRuntimeRefuses(), Things());
  static_cast<void>(cudaGetLastError());
}

BOOST_AUTO_TEST_CASE(device_code) { MakeAll(CallsOfCode(), Things()); }

BOOST_AUTO_TEST_CASE(library_handles) {
  const ContextRef ended = [] {
    const cuguest::PrimaryContext primary = RetainPrimary();
    const ContextRef incarnation = primary.context();
    OK(RAW(cuDevicePrimaryCtxReset)(0));
    return incarnation;
  }();
  MakeAll(LibraryCalls(), LibraryThings(ended));
}

// By nvJitLink.
BOOST_AUTO_TEST_CASE(
    lto_link,
    *cuguest_test::NeedsDriver(13000, "an older one is given the nvJitLink of its own version")) {
  const cuguest_test::Owner owner;
  const OwnContext bystander;
  g_call = "an LTO link";
  const Reentry reentry(bystander.get(), kSeconds);
  const auto linked =
      cuguest_test::Link(owner.ref(), {IMAGE(linked_lto_ir), IMAGE(linked_part_lto_ir)});
  BOOST_TEST(linked.ok(), linked.status().ToString());
}

BOOST_AUTO_TEST_SUITE_END()
