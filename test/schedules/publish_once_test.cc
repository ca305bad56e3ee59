// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedules of lib/core/publish_once.h, with which the driver's table and what is found in
// other libraries are published. A program is a word for each of its threads:
//
//   G   asks for the value
//   O   offers one of its own
//
// It is an error if two threads are given different values, or one that is not whole; if a value
// that was there is no longer, or is not in the object itself; and if not exactly one offer wins.

// A header that was made wrong on purpose, or the real one.
#ifdef CUGUEST_EXPLORED_HEADER
#include CUGUEST_EXPLORED_HEADER
#else
#include "lib/core/publish_once.h"
#endif

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "test/schedules/cases.h"

namespace {

using cuguest::internal::Atomic;
using cuguest::internal::PublishOnce;
using schedules::Bounds;
using schedules::Case;
using schedules::Group;
using schedules::kUnbounded;
using schedules::Require;

struct Value {
  int maker;
};

class Publishing : public schedules::Program {
 public:
  explicit Publishing(std::vector<std::string> threads) : words_(std::move(threads)) {}

  int Threads() const override { return static_cast<int>(words_.size()); }
  void Run(int thread) override {
    for (const char operation : words_[static_cast<std::size_t>(thread)]) {
      operation == 'O' ? Offer(thread) : Get(thread);
    }
  }
  void Finish() override {
    bool offered = false;
    for (const std::string& word : words_) {
      offered = offered || word.find('O') != std::string::npos;
    }
    Require(wins_ == (offered ? 1 : 0), "not exactly one offer wins");
    Require((once_.Get() != nullptr) == offered, "a value that nobody offered, or none");
  }

 private:
  void Get(int thread) {
    const Value* const kept = once_.Get();
    Require(kept != nullptr || !has_[static_cast<std::size_t>(thread)], "the value is gone");
    if (kept != nullptr) Look(thread, kept);
  }

  void Offer(int thread) {
    made_[static_cast<std::size_t>(thread)].store(1, std::memory_order_relaxed);
    bool won = false;
    const Value* const kept = once_.Offer({thread}, &won);
    Require(kept != nullptr, "no memory");
    Look(thread, kept);
    if (won) {
      ++wins_;
      Require(kept->maker == thread, "another offer has won");
    }
  }

  // What the maker did before it offered the value has happened.
  void Look(int thread, const Value* kept) {
    has_[static_cast<std::size_t>(thread)] = true;
    const auto maker = static_cast<std::size_t>(kept->maker);
    Require(made_[maker].load(std::memory_order_relaxed) == 1, "the value is not whole");
    if (kept_ == nullptr) {
      kept_ = kept;
      maker_ = kept->maker;
    }
    Require(kept == kept_ && kept->maker == maker_, "two threads have different values");
    const std::less<const void*> before;
    Require(!before(kept, &once_) && before(kept, &once_ + 1), "the value is on the heap");
  }

  PublishOnce<Value> once_;
  std::array<Atomic<int>, 4> made_;
  std::array<bool, 4> has_{};
  const Value* kept_ = nullptr;
  int maker_ = -1;
  int wins_ = 0;
  std::vector<std::string> words_;
};

Case Words(const std::vector<std::string>& threads, const Bounds& bounds) {
  std::string name;
  for (const std::string& word : threads) name += (name.empty() ? "" : " ") + word;
  return {name, [=] { return std::make_unique<Publishing>(threads); }, bounds};
}

}  // namespace

std::vector<Group> schedules::Groups() {
  const Bounds every = {};
  const Bounds weak = {kUnbounded, kUnbounded};
  std::vector<Group> groups;
  for (const Bounds& bounds : {every, weak}) {
    const std::string weakly = bounds.stale_reads == 0 ? "" : "_weak";
    Group two{"two_threads" + weakly, {}};
    Group three{"three_threads_two_operations" + weakly, {}};
    const std::vector<std::string> words = {"G", "O", "GG", "GO", "OG"};
    for (const std::string& a : words) {
      for (const std::string& b : words) {
        two.cases.push_back(Words({a, b}, bounds));
        if (a.size() + b.size() < 4) continue;
        for (const char* c : {"GG", "GO", "OG"}) three.cases.push_back(Words({a, b, c}, bounds));
      }
    }
    groups.push_back(two);
    groups.push_back(three);
  }
  return groups;
}
