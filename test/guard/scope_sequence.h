// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What random_scopes_test.cc plays: a host's stack, and what is done on it, step by step, by the
// library's user and by the callees of its scopes. The same sequence ends the same way each time.

#ifndef CUGUEST_TEST_GUARD_SCOPE_SEQUENCE_H_
#define CUGUEST_TEST_GUARD_SCOPE_SEQUENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "test/guard/scope_cases.h"

namespace scope_sequence {

enum class Class {
  kClean,         // no faults: the host's stack is what it was
  kRawFaults,     // callees push, pop and replace
  kExactGuard,    // likewise, inside an ExactGuard: the host's stack is what it was
  kFailingCalls,  // faults, and driver calls of the library that fail
  kResets,        // faults, and primary contexts that are reset and retained again
  kDestroyed,     // faults, and contexts that are destroyed on another thread
  kMixed,
};
constexpr Class kAllClasses[] = {
    Class::kClean,  Class::kRawFaults, Class::kExactGuard, Class::kFailingCalls,
    Class::kResets, Class::kDestroyed, Class::kMixed,
};
const char* NameOf(Class its);
// Whether the host's stack must be exactly what it was.
inline bool IsExact(Class its) { return its == Class::kClean || its == Class::kExactGuard; }

struct Step {
  enum class Does {
    kEnter,
    kEnd,
    kEndElsewhere,  // on another thread
    kMoveTo,
    kReassert,
    kPush,       // cuguest_push, or of C cuguest_push_ref
    kPop,        // cuguest_pop
    kPopByHand,  // a cuCtxPopCurrent that is paired with a cuguest_push
    // Of a callee, by the driver's functions.
    kCalleePushes,
    kCalleePops,
    kCalleeReplaces,
    // On another thread.
    kReset,    // a primary context
    kRetain,   // it comes back
    kDestroy,  // a created one
  };

  Does does;
  int scope = 0;  // which of kScopes, of the first five
  scope_cases::Language language = scope_cases::Language::kCpp;
  scope_cases::Kind kind = scope_cases::Kind::kElide;
  char context = 'A';
  const char* failing = nullptr;  // the driver's function of which a call fails meanwhile
  unsigned nth = 0;               // which call
};
constexpr int kScopes = 5;

// P and Q are the primary contexts of devices 0 and 1, the others are created. A small letter of
// the host's stack (bottom first) is one whose context is over by the first step.
constexpr char kCreated[] = "XYABCDM";
struct Sequence {
  Class its;
  std::uint64_t seed;
  std::string host;
  std::vector<Step> steps;
};

Sequence Generate(Class its, std::uint64_t seed);
std::string TextOf(const Step& step);
std::string TextOf(const Sequence& sequence);

}  // namespace scope_sequence

#endif  // CUGUEST_TEST_GUARD_SCOPE_SEQUENCE_H_
