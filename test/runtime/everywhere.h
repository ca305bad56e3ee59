// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matrix that every conversion goes through.

#ifndef CUGUEST_TEST_RUNTIME_EVERYWHERE_H_
#define CUGUEST_TEST_RUNTIME_EVERYWHERE_H_

#include <vector>

#include "cuguest/context_guard.h"
#include "test/runtime/runtime.h"

namespace cuguest_runtime_test {

// `make()` gives an object, by one API, in the context that is current; `use(object)` uses it,
// by the other API, and destroys it. Both run inside a guard of the same context, a user's and
// then the primary one: the caller has it current, or another, or nothing; `use` runs on the
// thread that `make` ran on, and on a new one. Nothing of the caller's may have changed.
template <typename Make, typename Use>
void Everywhere(const Make& make, const Use& use) {
  const OwnContext user;
  const OwnContext other;
  const auto primary = RetainPrimary();
  for (const CUcontext home : {user.get(), primary.get()}) {
    for (const std::vector<CUcontext>& stack :
         {std::vector<CUcontext>{home}, {other.get()}, std::vector<CUcontext>{}}) {
      const auto inside = [&](const auto& function) {
        SetStack(stack);
        {
          const Undisturbed undisturbed;
          const cuguest::ContextGuard guard(home);
          BOOST_TEST_REQUIRE(guard.ok());
          function();
        }
        SetStack({});
      };
      BOOST_TEST_CONTEXT((home == user.get() ? "a user's context, " : "the primary context, ")
                         << (stack.empty()          ? "none"
                             : stack.back() == home ? "it"
                                                    : "another")
                         << " current") {
        inside([&] { use(make()); });
        decltype(make()) object{};
        inside([&] { object = make(); });
        OnAnotherThread([&] { inside([&] { use(object); }); });
      }
    }
  }
}

}  // namespace cuguest_runtime_test

#endif  // CUGUEST_TEST_RUNTIME_EVERYWHERE_H_
