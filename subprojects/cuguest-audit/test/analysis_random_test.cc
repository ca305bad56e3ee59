// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random calls on a context stack, by a host and the libraries that it calls. The analysis finds a
// disturbance of the host's stack where, and only where, the stack shows one.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "audit/analysis.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(audit_analysis_random)

namespace {

using cuguest::audit::Analysis;
using cuguest::audit::Chain;
using cuguest::audit::ContextId;
using cuguest::audit::Event;
using cuguest::audit::EventKind;
using cuguest::audit::Finding;

using Party = std::uint32_t;  // an object
using Path = std::vector<Party>;
using Stack = std::vector<ContextId>;

constexpr Party kHost = 1;
constexpr Party kLibrary = 2;
constexpr Party kOther = 3;         // which the library calls
constexpr ContextId kContexts = 6;  // the host's, the library's and the other's, in turn

// A process of one thread, with a driver's idea of its stack.
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    for (const Party party : {kHost, kLibrary, kOther}) {
      analysis_.OnObject(party, {"/lib/lib" + std::to_string(party) + ".so", ""});
    }
    for (ContextId id = 1; id <= kContexts; ++id) {
      Event event;
      event.kind = EventKind::kContext;
      event.context = id;
      event.device = 0;
      const Party maker = 1 + static_cast<Party>(id % 3);
      Tell("cuCtxCreate",
           maker == kHost    ? Path{kHost}
           : maker == kOther ? Path{kHost, kLibrary, kOther}
                             : Path{kHost, kLibrary},
           &event);
    }
    // The host manages contexts.
    Push({kHost}, 1);
    Pop({kHost});
  }

  std::uint64_t Below(std::uint64_t limit) { return random_() % limit; }
  ContextId AnyContext() { return 1 + Below(kContexts); }

  void Push(const Path& path, ContextId context) {
    Event event = Before(context);
    stack_.push_back(context);
    Tell("cuCtxPushCurrent", path, &event);
  }
  void Pop(const Path& path) {
    if (stack_.empty()) return;
    Event event = Before(stack_.back());
    stack_.pop_back();
    Tell("cuCtxPopCurrent", path, &event);
  }
  void Set(const Path& path, ContextId context) {
    Event event = Before(context);
    if (!stack_.empty()) stack_.pop_back();
    if (context != 0) stack_.push_back(context);
    Tell("cuCtxSetCurrent", path, &event);
  }
  // The call of another function, which changes nothing.
  void Check(const Path& path) {
    Event event = Before(0);
    event.kind = EventKind::kCheck;
    Tell("cuCtxSynchronize", path, &event);
  }

  void DoAnything(const Path& path) {
    switch (Below(6)) {
      case 0:
      case 1:
        return Push(path, AnyContext());
      case 2:
      case 3:
        return Pop(path);
      case 4:
        return Set(path, AnyContext());
      default:
        return Set(path, Below(3) == 0 ? 0 : AnyContext());
    }
  }
  void Restore(const Path& path, const Stack& wanted) {
    const auto [differs, unused] =
        std::mismatch(stack_.begin(), stack_.end(), wanted.begin(), wanted.end());
    const auto kept = static_cast<std::size_t>(differs - stack_.begin());
    while (stack_.size() > kept) Pop(path);
    while (stack_.size() < wanted.size()) Push(path, wanted[stack_.size()]);
  }

  const Stack& stack() const { return stack_; }
  const Analysis& analysis() const { return analysis_; }
  // What was called, and found.
  std::string Text() const {
    std::string text = calls_;
    for (const Finding& finding : analysis_.Findings()) {
      text += std::string("\n") + Identifier(finding.kind) + " " + finding.call + " by " +
              std::to_string(finding.culprit.object) + ", victim " +
              std::to_string(finding.victim.object);
    }
    return text;
  }

 private:
  ContextId current() const { return stack_.empty() ? 0 : stack_.back(); }

  Event Before(ContextId context) {
    Event event;
    event.before = current();
    event.context = context;
    return event;
  }
  void Tell(const char* name, const Path& path, Event* event) {
    event->name = name;
    event->thread = 1;
    event->time_ns = ++time_;
    if (event->kind != EventKind::kContext) event->after = current();
    Chain chain;
    for (std::size_t i = path.size(); i-- > 0;) {
      chain.push_back({path[i], 16 * (i + 1), 1'000'000 - 100 * i});
    }
    event->chain = std::make_shared<const Chain>(chain);
    analysis_.OnEvent(*event);
    calls_ += std::string(name) + " " + std::to_string(event->context) + " by " +
              std::to_string(path.back()) + "; ";
    if (event->kind != EventKind::kContext) BOOST_REQUIRE(analysis_.Stack(1) == stack_);
  }

  std::mt19937_64 random_;
  Analysis analysis_;
  Stack stack_;
  std::uint64_t time_ = 0;
  std::string calls_;
};

constexpr unsigned kPrograms = 5'000;

const std::vector<Path> kLibraryAlone = {{kHost, kLibrary}};
const std::vector<Path> kAll = {{kHost, kLibrary},
                                {kHost, kLibrary},
                                {kHost, kLibrary, kOther},
                                {kHost, kLibrary, kOther, kLibrary}};

// The host has up to three contexts, and calls the library, which calls the other one.
struct Called : Program {
  Called(unsigned seed, const std::vector<Path>& paths) : Program(seed) {
    for (std::uint64_t i = Below(4); i > 0; --i) Push({kHost}, AnyContext());
    before = stack();
    for (std::uint64_t i = 1 + Below(6); i > 0; --i) {
      DoAnything(paths[Below(paths.size())]);
    }
    // Often as a library ought to.
    if (Below(2) == 0) Restore({kHost, kLibrary}, before);
    disturbed = stack() != before;
  }

  Stack before;
  bool disturbed;
};

// What the other one left is found once, for the library: then nothing of it is for the host.
bool IsFound(const Program& program, bool is_disturbed) {
  bool is_any = false;
  bool is_for_host = false;
  for (const Finding& finding : program.analysis().Findings()) {
    BOOST_REQUIRE_MESSAGE(finding.culprit.object != kHost, program.Text());
    is_any = true;
    is_for_host = is_for_host || finding.victim.object == kHost;
  }
  return is_disturbed ? is_any : is_for_host;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_left_is_found) {
  unsigned disturbed = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Called program(seed, kAll);
    program.Check({kHost});
    BOOST_REQUIRE_MESSAGE(IsFound(program, program.disturbed) == program.disturbed, program.Text());
    disturbed += program.disturbed ? 1 : 0;
  }
  BOOST_TEST(disturbed > kPrograms / 4);
  BOOST_TEST(disturbed < kPrograms * 3 / 4);
}

BOOST_AUTO_TEST_CASE(what_the_host_repairs_stays_found) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Called program(seed, kAll);
    program.Check({kHost});
    program.Restore({kHost}, program.before);
    program.Check({kHost});
    BOOST_REQUIRE_MESSAGE(IsFound(program, program.disturbed) == program.disturbed, program.Text());
  }
}

// As one that enters in one function and leaves in another. Where the other one disturbs what the
// library takes back, a charge may stand that was undone: in 5 of 200,000 such programs.
BOOST_AUTO_TEST_CASE(what_the_library_takes_back_is_not_found) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Called program(seed, kLibraryAlone);
    program.Check({kHost});
    program.Restore({kHost, kLibrary}, program.before);
    program.Check({kHost});
    BOOST_REQUIRE_MESSAGE(!IsFound(program, false), program.Text());
  }
}

BOOST_AUTO_TEST_SUITE_END()
