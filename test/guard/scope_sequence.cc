// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/guard/scope_sequence.h"

#include <cstring>
#include <iterator>

#include "test/interop/storm/random.h"

namespace scope_sequence {
namespace {

using scope_cases::HasContext;
using scope_cases::Kind;
using scope_cases::Language;
using storm::Random;
using Does = Step::Does;

constexpr Does kOfUser[] = {Does::kEnter, Does::kEnter, Does::kEnter,    Does::kEnd,
                            Does::kEnd,   Does::kEnd,   Does::kMoveTo,   Does::kReassert,
                            Does::kPush,  Does::kPush,  Does::kPop,      Does::kPopByHand,
                            Does::kEnter, Does::kEnd,   Does::kPopByHand};
constexpr Does kOfCallee[] = {Does::kCalleePushes, Does::kCalleePops, Does::kCalleeReplaces};
constexpr const char* kFailing[] = {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
                                    "cuCtxSetCurrent", "cuCtxGetId"};

char AnyOf(const char* letters, Random* random) {
  return letters[random->Below(static_cast<int>(std::strlen(letters)))];
}

// Few contexts, so that the same one is often there twice.
char AnyContext(Class its, Random* random) {
  if (its == Class::kResets) return AnyOf("XABPQP", random);
  return AnyOf(its == Class::kMixed ? "XYABCDPQ" : "XAABBCP", random);
}

bool Has(Class its, Class part) { return its == part || its == Class::kMixed; }

Does AnyKindOfStep(Class its, Random* random) {
  if (its != Class::kClean && random->OneIn(4)) return kOfCallee[random->Below(3)];
  if (Has(its, Class::kResets) && random->OneIn(10)) {
    return random->OneIn(2) ? Does::kReset : Does::kRetain;
  }
  if (Has(its, Class::kDestroyed) && random->OneIn(14)) return Does::kDestroy;
  if (random->OneIn(20)) return Does::kEndElsewhere;
  const Does does = kOfUser[random->Below(static_cast<int>(std::size(kOfUser)))];
  // Less is certain afterwards where there are faults.
  if (does == Does::kPopByHand && its != Class::kClean && !random->OneIn(3)) return Does::kEnd;
  return does;
}

Step AnyStep(Class its, Random* random) {
  Step step{AnyKindOfStep(its, random)};
  step.scope = random->Below(kScopes);
  step.language = random->OneIn(2) ? Language::kC : Language::kCpp;
  step.kind = random->OneIn(3) ? Kind::kElide : scope_cases::kAllKinds[random->Below(9)];
  if (!scope_cases::Has(step.language, step.kind)) step.language = Language::kCpp;
  step.context = AnyContext(its, random);
  if (step.does == Does::kReset || step.does == Does::kRetain) step.context = AnyOf("PQ", random);
  if (step.does == Does::kDestroy) step.context = AnyOf("XABC", random);
  if (Has(its, Class::kFailingCalls) && random->OneIn(its == Class::kMixed ? 10 : 4)) {
    step.failing = kFailing[random->Below(5)];
    step.nth = 1 + static_cast<unsigned>(random->Below(10));
  }
  return step;
}

std::string AnyHost(Class its, Random* random) {
  std::string host;
  for (int left = random->Below(5); left > 0; --left) host += AnyContext(its, random);
  // An ExactGuard refuses to enter on such a stack.
  if (its != Class::kExactGuard && !host.empty() && random->OneIn(4)) {
    host.insert(host.begin() + random->Below(static_cast<int>(host.size())), 'm');
  }
  return host;
}

const char* TextOf(Does does) {
  constexpr const char* kTexts[] = {
      "enter",         "end",          "end on another thread", "move to",
      "reassert",      "cuguest_push", "cuguest_pop",           "pop by hand",
      "callee pushes", "callee pops",  "callee replaces by",    "reset",
      "retain",        "destroy"};
  return kTexts[static_cast<int>(does)];
}

}  // namespace

const char* NameOf(Class its) {
  constexpr const char* kNames[] = {"clean",  "raw_faults", "exact_guard", "failing_calls",
                                    "resets", "destroyed",  "mixed"};
  return kNames[static_cast<int>(its)];
}

std::string TextOf(const Step& step) {
  std::string text = TextOf(step.does);
  if (step.does <= Does::kReassert) text += " " + std::to_string(step.scope);
  if (step.does == Does::kEnter) text += ": " + scope_cases::NameOf(step.language, step.kind);
  const bool has_context = (step.does == Does::kEnter && HasContext(step.kind)) ||
                           step.does == Does::kMoveTo || step.does == Does::kPush ||
                           step.does == Does::kCalleePushes || step.does >= Does::kCalleeReplaces;
  if (has_context) text += std::string(" ") + step.context;
  if (step.does == Does::kPush && step.language == Language::kC) text += " by reference";
  if (step.failing == nullptr) return text;
  return text + ", where call " + std::to_string(step.nth) + " of " + step.failing + " fails";
}

Sequence Generate(Class its, std::uint64_t seed) {
  Random random = Random::Of(static_cast<std::uint64_t>(its), seed, 0);
  Sequence sequence{its, seed, AnyHost(its, &random), {}};
  const int count = 3 + random.Below(random.OneIn(4) ? 40 : 15);
  for (int i = 0; i < count; ++i) sequence.steps.push_back(AnyStep(its, &random));
  return sequence;
}

std::string TextOf(const Sequence& sequence) {
  std::string text = std::string(NameOf(sequence.its)) + ", on [" + sequence.host + "]:";
  for (const Step& step : sequence.steps) text += "\n    " + TextOf(step);
  return text;
}

}  // namespace scope_sequence
