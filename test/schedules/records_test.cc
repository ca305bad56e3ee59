// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedules of lib/guard/records.cc: how a scope tells the thread that it belongs to that it
// was ended on another one, and how BoundThread and others know the thread that they are bound
// to. A program is a word for each of its threads, whose letters are operations:
//
//   B     binds something to this thread
//   E     enters a scope on this thread
//   L     leaves the scope that this thread has entered last, unless another thread has
//   X     ends the oldest scope of another thread that is still open
//   R     reads what others have ended here
//   T     this thread ends, and another one begins in its place
//
// It is an error if a thread treats something as its own that was bound to another one, or the
// other way round; if after reading a scope that another thread has ended is not marked, or one
// that nobody has ended is; if two scopes have one serial; and if a letter is counted that nobody
// has to read.

#include <string>
#include <utility>
#include <vector>

#include "cuguest/internal/this_thread.h"
#include "lib/guard/records.h"
#include "test/schedules/cases.h"
#include "test/schedules/concurrency.h"

namespace {

using cuguest::internal::BoundThread;
using cuguest::internal::g_ended_elsewhere;
using cuguest::internal::Mutex;
using cuguest::internal::Record;
using cuguest::internal::ThisThread;
using schedules::Bounds;
using schedules::Case;
using schedules::Group;
using schedules::kUnbounded;
using schedules::Require;
namespace records = cuguest::internal::records;

// What the test knows of a thread of the program, or of one that was in its place.
struct Thread {
  int place = 0;
  int life = 0;
  bool operator==(const Thread& other) const { return place == other.place && life == other.life; }
};

struct Bound {
  Thread thread;
  BoundThread bound;
};

struct Entered {
  Thread thread;
  int kernel_thread;
  unsigned slot;
  unsigned long long serial;
  bool is_ending = false;  // on another thread
  bool is_told = false;
  bool is_over = false;
};

class Nesting : public schedules::Program {
 public:
  explicit Nesting(std::vector<std::string> threads)
      : words_(std::move(threads)), here_(words_.size()) {
    for (std::size_t i = 0; i < here_.size(); ++i) here_[i].place = static_cast<int>(i);
    g_ended_elsewhere = 0;
  }

  int Threads() const override { return static_cast<int>(words_.size()); }
  void Run(int thread) override {
    const auto index = static_cast<std::size_t>(thread);
    for (const char operation : words_[index]) {
      Do(operation, &here_[index]);
      LookAtBound(here_[index]);
    }
  }
  void Finish() override {
    unsigned unread = 0;
    for (const Entered& each : entered_) {
      if (each.is_told && !each.is_over) ++unread;
    }
    Require(g_ended_elsewhere == unread, "letters are counted that nobody has to read");
  }

 private:
  void Do(char operation, Thread* here) {
    switch (operation) {
      case 'B': {
        const Bound bound{*here, {}};
        const std::lock_guard<Mutex> lock(mutex_);
        return bound_.push_back(bound);
      }
      case 'E':
        return Enter(*here);
      case 'L':
        return Leave(*here);
      case 'X':
        return EndElsewhere(*here);
      case 'R':
        return Read(*here);
      default:
        End(here);
    }
  }

  void Enter(const Thread& here) {
    Record* const record = records::Add();
    Require(record != nullptr, "there is no record");
    record->state = Record::State::kLive;
    const Entered entered{here,
                          static_cast<ThisThread&>(cuguest::internal::t_this_thread).kernel_thread,
                          records::Depth() - 1, record->serial};
    const std::lock_guard<Mutex> lock(mutex_);
    for (const Entered& each : entered_) {
      Require(each.serial != entered.serial, "two scopes have one serial");
    }
    entered_.push_back(entered);
  }

  void Leave(const Thread& here) {
    unsigned slot = 0;
    {
      const std::lock_guard<Mutex> lock(mutex_);
      Entered* last = nullptr;
      for (Entered& each : entered_) {
        if (each.thread == here && !each.is_over) last = &each;
      }
      if (last == nullptr || last->is_ending) return;
      last->is_over = true;
      slot = last->slot;
    }
    records::Free(slot);
  }

  void EndElsewhere(const Thread& here) {
    std::size_t which = 0;
    {
      const std::lock_guard<Mutex> lock(mutex_);
      while (which < entered_.size() && !IsOpenElsewhere(entered_[which], here)) ++which;
      if (which == entered_.size()) return;
      entered_[which].is_ending = true;
    }
    const Entered ended = Of(which);
    Require(records::TellOwner(ended.kernel_thread, ended.serial), "the owner cannot be told");
    const std::lock_guard<Mutex> lock(mutex_);
    entered_[which].is_told = true;
  }
  static bool IsOpenElsewhere(const Entered& each, const Thread& here) {
    return each.thread.place != here.place && !each.is_ending && !each.is_over;
  }
  Entered Of(std::size_t which) {
    const std::lock_guard<Mutex> lock(mutex_);
    return entered_[which];
  }

  // Those that were told before must be marked afterwards; none that nobody has begun to end.
  void Read(const Thread& here) {
    std::vector<std::size_t> told;
    {
      const std::lock_guard<Mutex> lock(mutex_);
      for (std::size_t i = 0; i < entered_.size(); ++i) {
        if (entered_[i].thread == here && entered_[i].is_told && !entered_[i].is_over) {
          told.push_back(i);
        }
      }
    }
    records::ReadMail();
    for (const std::size_t which : told) {
      const Entered entered = Of(which);
      const Record* const record = records::Find(entered.slot, entered.serial);
      Require(record != nullptr && record->state == Record::State::kEnded,
              "a scope that was ended elsewhere is not marked");
    }
    const std::lock_guard<Mutex> lock(mutex_);
    for (Entered& each : entered_) {
      if (!(each.thread == here) || each.is_over) continue;
      const Record* const record = records::Find(each.slot, each.serial);
      if (record == nullptr || record->state != Record::State::kEnded) continue;
      Require(each.is_ending, "a scope is marked that nobody has ended");
      each.is_over = true;
    }
  }

  void End(Thread* here) {
    {
      const std::lock_guard<Mutex> lock(mutex_);
      for (Entered& each : entered_) {
        if (each.thread == *here && !each.is_ending) each.is_over = true;
      }
    }
    ++here->life;
    static_cast<ThisThread&>(cuguest::internal::t_this_thread) = {};
  }

  // Every object that this thread has seen is its own, or is not.
  void LookAtBound(const Thread& here) {
    std::vector<Bound> seen;
    {
      const std::lock_guard<Mutex> lock(mutex_);
      seen = bound_;
    }
    for (const Bound& bound : seen) {
      Require(bound.bound.IsThis() == (bound.thread == here), "a thread is treated as another one");
    }
  }

  std::vector<std::string> words_;
  std::vector<Thread> here_;
  Mutex mutex_;
  std::vector<Bound> bound_;
  std::vector<Entered> entered_;
};

Case Words(const std::vector<std::string>& threads, const Bounds& bounds) {
  std::string name;
  for (const std::string& word : threads) name += (name.empty() ? "" : " ") + word;
  return {name, [=] { return std::make_unique<Nesting>(threads); }, bounds};
}

}  // namespace

std::vector<Group> schedules::Groups() {
  const Bounds every = {};
  const Bounds weak = {kUnbounded, 1};
  const Bounds three_preemptions = {3};
  std::vector<Group> groups;
  for (const Bounds& bounds : {every, weak}) {
    Group two{bounds.stale_reads == 0 ? "two_threads" : "two_threads_weak", {}};
    const std::vector<std::vector<std::string>> programs = {
        {"B", "B"},    {"B", "BTB"},  {"BTB", "BTB"}, {"ER", "X"}, {"ERR", "XX"},
        {"EER", "XX"}, {"ELER", "X"}, {"ETE", "X"},   {"E", "E"},  {"ERER", "XX"},
    };
    for (const auto& program : programs) two.cases.push_back(Words(program, bounds));
    two.cases.push_back(Words({"EXR", "EXR"}, {4, bounds.stale_reads}));  // else two millions
    groups.push_back(two);
  }
  Group three{"three_threads", {}};
  three.cases.push_back(Words({"B", "B", "B"}, three_preemptions));
  three.cases.push_back(Words({"EER", "X", "X"}, three_preemptions));
  three.cases.push_back(Words({"ER", "ER", "XX"}, three_preemptions));
  three.cases.push_back(Words({"ER", "EXR", "X"}, three_preemptions));
  three.cases.push_back(Words({"EREER", "X", "X", "X"}, three_preemptions));
  groups.push_back(three);
  return groups;
}
