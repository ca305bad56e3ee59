// SPDX-License-Identifier: Apache-2.0
//
// The schedules of lib/context/thread_guards.cc: how ThreadResidency and the guards know the thread
// that they are bound to, and what becomes of a thread's list when a guard on it was ended by
// another one. A program is a word for each of its threads, whose letters are operations:
//
//   B     binds something to this thread
//   T     this thread ends, and another one begins in its place
//   F     ends, on this thread, what was bound last to another one, whose list is given up
//   S     looks whether this thread's list is sound
//
// It is an error if a thread treats something as its own that was bound to another one, or the
// other way round; if it treats its list as sound after it was given up; and as given up when
// there was room to remember the others.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuguest/internal/this_thread.h"
#include "lib/context/thread_guards.h"
#include "test/schedules/cases.h"
#include "test/schedules/concurrency.h"

namespace {

using cuguest::internal::BoundThread;
using cuguest::internal::ForgetListOf;
using cuguest::internal::ListIsSound;
using cuguest::internal::Mutex;
using cuguest::internal::NumberOfThisThread;
using cuguest::internal::ThisThread;
using schedules::Bounds;
using schedules::Case;
using schedules::Group;
using schedules::kUnbounded;
using schedules::Require;

constexpr int kRoom = 2;  // for threads whose list is given up

// What the test knows of a thread of the program, or of one that was in its place.
struct Thread {
  int place = 0;
  int life = 0;
  bool operator==(const Thread& other) const { return place == other.place && life == other.life; }
};

struct Bound {
  Thread thread;
  BoundThread bound;
  unsigned long long number = NumberOfThisThread();
  bool is_ended = false;
};

class Binding : public schedules::Program {
 public:
  explicit Binding(std::vector<std::string> threads)
      : words_(std::move(threads)), here_(words_.size()) {
    for (std::size_t i = 0; i < here_.size(); ++i) here_[i].place = static_cast<int>(i);
  }

  int Threads() const override { return static_cast<int>(words_.size()); }
  void Run(int thread) override {
    const auto index = static_cast<std::size_t>(thread);
    for (const char operation : words_[index]) {
      Do(operation, &here_[index]);
      LookAtAll(here_[index]);
    }
  }

 private:
  void Do(char operation, Thread* here) {
    switch (operation) {
      case 'B': {
        const Bound bound{*here, {}};
        const std::lock_guard<Mutex> lock(mutex_);
        return bound_.push_back(bound);
      }
      case 'T':
        ++here->life;
        static_cast<ThisThread&>(cuguest::internal::t_this_thread) = {};
        return;
      case 'F':
        return End(*here);
      default:
        return LookAtList(*here);
    }
  }

  // Every object that this thread has seen is its own, or is not.
  void LookAtAll(const Thread& here) {
    std::vector<Bound> seen;
    {
      const std::lock_guard<Mutex> lock(mutex_);
      seen = bound_;
    }
    for (const Bound& bound : seen) {
      Require(bound.bound.IsThis() == (bound.thread == here), "a thread is treated as another one");
    }
  }

  void End(const Thread& here) {
    std::optional<Bound> others;
    {
      const std::lock_guard<Mutex> lock(mutex_);
      for (Bound& bound : bound_) {
        if (bound.is_ended || bound.thread == here) continue;
        bound.is_ended = true;
        others = bound;
        break;
      }
    }
    if (!others.has_value()) return;
    ++forgetting_;
    ForgetListOf(others->number);
    const std::lock_guard<Mutex> lock(mutex_);
    forgotten_.push_back(others->thread);
  }

  void LookAtList(const Thread& here) {
    static_cast<void>(NumberOfThisThread());  // a thread without a number has no list
    bool is_forgotten = false;
    {
      const std::lock_guard<Mutex> lock(mutex_);
      for (const Thread& thread : forgotten_) is_forgotten = is_forgotten || thread == here;
    }
    const bool is_sound = ListIsSound();
    Require(!is_forgotten || !is_sound, "a list that is given up is treated as sound");
    bool may_be_forgotten = forgetting_ > kRoom;
    for (const Bound& bound : bound_) {
      may_be_forgotten = may_be_forgotten || (bound.is_ended && bound.thread == here);
    }
    Require(is_sound || may_be_forgotten, "a sound list is treated as given up");
  }

  std::vector<std::string> words_;
  std::vector<Thread> here_;
  Mutex mutex_;
  std::vector<Bound> bound_;
  std::vector<Thread> forgotten_;
  int forgetting_ = 0;
};

Case Words(const std::vector<std::string>& threads, const Bounds& bounds) {
  std::string name;
  for (const std::string& word : threads) name += (name.empty() ? "" : " ") + word;
  return {name, [=] { return std::make_unique<Binding>(threads); }, bounds};
}

}  // namespace

std::vector<Group> schedules::Groups() {
  const Bounds every = {};
  const Bounds weak = {kUnbounded, kUnbounded};
  const Bounds three_preemptions = {3};
  std::vector<Group> groups;
  for (const Bounds& bounds : {every, weak}) {
    Group two{bounds.stale_reads == 0 ? "two_threads" : "two_threads_weak", {}};
    const std::vector<std::string> words = {"B", "BS", "F", "S", "BF", "BTB", "BTS", "FS"};
    for (const std::string& a : words) {
      for (const std::string& b : words) {
        if (a <= b) two.cases.push_back(Words({a, b}, bounds));
      }
    }
    two.cases.push_back(Words({"BTBTBS", "FFF"}, bounds));
    groups.push_back(two);
  }
  Group three{"three_threads", {}};
  three.cases.push_back(Words({"B", "B", "B"}, three_preemptions));
  three.cases.push_back(Words({"BTB", "BF", "F"}, three_preemptions));
  three.cases.push_back(Words({"BS", "BFS", "BFS"}, three_preemptions));
  three.cases.push_back(Words({"BBBS", "FF", "FS"}, three_preemptions));
  groups.push_back(three);
  return groups;
}
