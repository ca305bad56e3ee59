// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ten million events of a program that does everything wrong: the analysis needs no more memory for
// the last nine million of them than for the first one.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "audit/analysis.h"
#include "test/support/test.h"

namespace {

namespace audit = cuguest::audit;

std::uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

class Program {
 public:
  explicit Program(audit::Analysis* analysis) : analysis_(analysis) {
    for (std::uint32_t object = 1; object <= kObjects; ++object) {
      analysis_->OnObject(object, {"/lib/lib" + std::to_string(object) + ".so", ""});
    }
    for (std::uint32_t& thread : threads_) {
      thread = ++last_thread_;
    }
  }

  void Step() {
    audit::Event event;
    event.time_ns = ++time_;
    std::uint32_t& thread = threads_[Below(8)];
    event.thread = thread;
    event.chain = MakeChain();
    audit::ContextId& current = current_[thread % 64];
    event.before = event.after = current;
    const std::uint64_t what = Below(100);
    if (what < 2) {
      event.kind = audit::EventKind::kThreadEnd;
      thread = ++last_thread_;
      current_[thread % 64] = 0;
    } else if (what < 10) {
      event.kind = audit::EventKind::kContext;
      event.primary = Below(2) == 0;
      event.name = event.primary ? "cudaSetDevice" : "cuCtxCreate";
      event.device = static_cast<int>(Below(4));
      event.context = ++last_context_;
      contexts_.push_back(last_context_);
    } else if (what < 18 && contexts_.size() > 50) {
      event.name = "cuCtxDestroy";
      event.context = contexts_.front();
      contexts_.pop_front();
    } else if (what < 50) {
      event.name = "cuCtxPushCurrent";
      event.context = event.after = AnyContext();
    } else if (what < 60) {
      event.name = "cuCtxPopCurrent";
      event.after = Below(3) == 0 ? 0 : AnyContext();
    } else if (what < 75) {
      event.name = Below(2) == 0 ? "cudaSetDevice" : "cuCtxSetCurrent";
      event.context = event.after = AnyContext();
    } else if (what < 80) {
      event.name = "cuCtxSetLimit";
      event.setting = static_cast<int>(Below(8));
      event.value = Below(1000);
      event.old_value = Below(1000);
      event.context = AnyContext();
    } else if (what < 84) {
      event.name = Below(2) == 0 ? "cuDevicePrimaryCtxRetain" : "cuDevicePrimaryCtxRelease";
      event.device = static_cast<int>(Below(4));
    } else if (what < 88) {
      event.name = Below(2) == 0 ? "cudaMalloc" : "cudaGetLastError";
      event.result = static_cast<int>(Below(5));
    } else if (what < 92) {
      event.name = Below(3) == 0 ? "cuStreamEndCapture" : "cuStreamBeginCapture";
      event.value = Below(1'000'000);
    } else if (what < 94) {
      event.name = "cuMemAlloc";
      event.result = 900;
    } else if (what < 95) {
      event.kind = audit::EventKind::kEntered;
      event.name = "cuCtxPushCurrent";
      event.context = last_context_ / 2 + 1;
    } else {
      event.kind = audit::EventKind::kCheck;
    }
    current = event.kind == audit::EventKind::kThreadEnd ? 0 : event.after;
    analysis_->OnEvent(event);
  }

 private:
  static constexpr std::uint32_t kObjects = 6;

  std::uint64_t Below(std::uint64_t limit) { return random_() % limit; }
  audit::ContextId AnyContext() {
    return contexts_.empty() ? 0 : contexts_[Below(contexts_.size())];
  }

  // Of a few stacks of frames, and of many that are seen once.
  std::shared_ptr<const audit::Chain> MakeChain() {
    auto chain = std::make_shared<audit::Chain>();
    std::uint64_t address = Below(50) == 0 ? random_() : 0x100000 * (1 + Below(2));
    chain->push_back({1, 1, address});
    for (std::uint64_t i = Below(6); i > 0; --i) {
      address -= 0x100 * (1 + Below(2));
      chain->insert(chain->begin(),
                    {static_cast<std::uint32_t>(1 + Below(kObjects)), Below(3), address});
    }
    return chain;
  }

  audit::Analysis* const analysis_;
  std::mt19937_64 random_{20};
  std::uint64_t time_ = 0;
  std::uint32_t last_thread_ = 0;
  std::uint32_t threads_[8];
  audit::ContextId last_context_ = 0;
  audit::ContextId current_[64] = {};
  std::deque<audit::ContextId> contexts_;
};

BOOST_AUTO_TEST_SUITE(audit_bounded)

BOOST_AUTO_TEST_CASE(ten_million_events) {
  audit::Analysis analysis;
  Program program(&analysis);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1'000'000; ++i) {
    program.Step();
  }
  const std::size_t findings = analysis.Findings().size();
  const std::uint64_t early = ResidentBytes();
  for (int i = 0; i < 9'000'000; ++i) {
    program.Step();
  }
  const auto end = std::chrono::steady_clock::now();
  const std::uint64_t late = ResidentBytes();
  BOOST_TEST_MESSAGE("after 1 million events "
                     << early / 1024 << " KiB and " << findings << " findings, after 10 million "
                     << late / 1024 << " KiB and " << analysis.Findings().size() << ", "
                     << std::chrono::duration<double>(end - begin).count() << " s");
  BOOST_TEST(findings > 1000u);
  BOOST_TEST(late < early + early / 4 + (8 << 20));
}

// One call, again and again.
BOOST_AUTO_TEST_CASE(a_million_leaks) {
  audit::Analysis analysis;
  analysis.OnObject(1, {"/bin/host", ""});
  analysis.OnObject(2, {"/lib/libthird.so", ""});
  const auto host = std::make_shared<audit::Chain>(audit::Chain{{1, 1, 200}});
  const auto third = std::make_shared<audit::Chain>(audit::Chain{{2, 1, 100}, {1, 1, 200}});
  audit::Event push;
  push.thread = 1;
  push.name = "cuCtxPushCurrent";
  push.after = push.context = 1;
  push.chain = host;
  analysis.OnEvent(push);
  push.before = 1;
  audit::Event check = push;
  check.kind = audit::EventKind::kCheck;
  push.chain = third;
  const std::uint64_t early = ResidentBytes();
  for (int i = 0; i < 1'000'000; ++i) {
    push.time_ns = check.time_ns = static_cast<std::uint64_t>(i);
    analysis.OnEvent(push);
    analysis.OnEvent(check);
  }
  const std::vector<audit::Finding> findings = analysis.Findings();
  BOOST_REQUIRE(findings.size() == 1u);
  BOOST_TEST(findings[0].count == 1'000'000u);
  BOOST_TEST(findings[0].time_ns == 0u);
  BOOST_TEST(ResidentBytes() < early + (16 << 20));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
