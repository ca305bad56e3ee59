// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/schedules/explorer.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace schedules {
namespace {

constexpr int kMaxThreads = 4;
constexpr int kMain = kMaxThreads;  // makes and finishes programs
constexpr std::size_t kStackSize = 256 << 10;
constexpr std::uint64_t kMaxSteps = 5000;  // of one execution

using Threads = unsigned;  // a set

constexpr Threads Only(int thread) { return 1U << thread; }
bool Has(Threads threads, int thread) { return (threads & Only(thread)) != 0; }

bool Acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool Releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

enum class Kind { kLoad, kStore, kModify, kLock, kTryLock, kUnlock, kWait, kNotify, kFork };
constexpr const char* kKinds[] = {"reads",         "writes",  "modifies", "locks",     //
                                  "tries to lock", "unlocks", "waits",    "notifies",  //
                                  "forks, beside"};

unsigned g_process = 1;

// The oldest value of each object that may be read, by the objects' numbers.
using View = std::vector<unsigned>;

unsigned OldestIn(const View& view, int number) {
  const auto index = static_cast<std::size_t>(number);
  return index < view.size() ? view[index] : 0;
}
void Raise(View* view, int number, unsigned oldest) {
  const auto index = static_cast<std::size_t>(number);
  if (index >= view->size()) view->resize(index + 1);
  (*view)[index] = std::max((*view)[index], oldest);
}
void Join(View* view, const View& other) {
  if (other.size() > view->size()) view->resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) (*view)[i] = std::max((*view)[i], other[i]);
}

}  // namespace

class Explorer {
 public:
  Explorer(const Bounds& bounds, const std::function<std::unique_ptr<Program>()>& make)
      : bounds_(bounds), make_(make) {}

  Outcome Explore() {
    static std::vector<char> s_stacks(kStackSize * kMaxThreads);
    stacks_ = s_stacks.data();
    for (;;) {
      Execute();
      ++(is_redundant_ ? outcome_.redundant : outcome_.executions);
      if (outcome_.failed()) return outcome_;
      if (!Backtrack()) {
        outcome_.is_complete = true;
        break;
      }
    }
    return outcome_;
  }

  // The step that the running thread is about to make. Returns when it is made.
  void Step(Kind kind, const Location* location, const Location* other = nullptr) {
    if (running_ == kMain) return;
    Thread& self = threads_[running_];
    self.next = {kind, location, other};
    if (is_starting_) {
      SwitchTo(kMain);
    } else {
      GoOn();
    }
    ++steps_;
    ++outcome_.steps;
    if (steps_ > kMaxSteps) Fail("the execution does not end");
    trace_.push_back({running_, kind, NumberOf(*location), 0, false});
  }

  void Fail(const char* why) {
    if (outcome_.failed()) return;
    outcome_.failure = why;
    for (const TraceEntry& entry : trace_) {
      char line[120];
      std::snprintf(line, sizeof(line), "\n  thread %d %s object %d: 0x%llx%s", entry.thread,
                    kKinds[static_cast<int>(entry.kind)], entry.object,
                    static_cast<unsigned long long>(entry.value), entry.is_stale ? ", stale" : "");
      outcome_.failure += line;
    }
    // Nothing on a thread's stack can be trusted to end from here.
    is_abandoned_ = true;
    if (running_ != kMain) SwitchTo(kMain);
  }

  // What the others have on their stacks is lost, as in a child of a real fork.
  void Fork() {
    static const Location s_none(0);
    Step(Kind::kFork, &s_none);
    for (int i = 0; i < count_; ++i) {
      if (i == running_) continue;
      threads_[i].is_finished = true;
      schedules::Join(&threads_[running_].view, threads_[i].view);
    }
    ++g_process;
  }

  int running() const { return running_; }
  std::uint64_t epoch() const { return epoch_; }
  void RunThread(int thread) {
    program_->Run(thread);
    threads_[thread].is_finished = true;
    if (is_starting_) SwitchTo(kMain);
    GoOn();
  }

  // ---------------------------------------------------------------------------
  // Memory
  // ---------------------------------------------------------------------------

  std::uint64_t Load(const Location& location, std::memory_order order) {
    Step(Kind::kLoad, &location);
    const int number = NumberOf(location);
    if (!HasHistory()) return Traced(location.value_);
    const History& history = histories_[static_cast<std::size_t>(number)];
    View& view = threads_[running_].view;
    unsigned oldest = OldestIn(view, number);
    if (order == std::memory_order_seq_cst) oldest = std::max(oldest, history.last_sequential);
    const auto newest = static_cast<unsigned>(history.values.size() - 1);
    const unsigned age = running_ == kMain ? 0 : ChooseAge(newest - oldest);
    const Message& read = history.values[newest - age];
    Raise(&view, number, newest - age);
    if (Acquires(order)) Join(&view, read.view);
    return Traced(read.value, age != 0);
  }

  // The newest value, for what modifies it.
  std::uint64_t Newest(const Location& location) {
    NumberOf(location);
    return location.value_;
  }

  void Read(const Location& location, std::memory_order order) {
    Traced(location.value_);
    if (!HasHistory()) return;
    const int number = NumberOf(location);
    const History& history = histories_[static_cast<std::size_t>(number)];
    View& view = threads_[running_].view;
    Raise(&view, number, static_cast<unsigned>(history.values.size() - 1));
    if (Acquires(order)) Join(&view, history.values.back().view);
  }

  void Write(const Location& location, std::uint64_t value, std::memory_order order,
             bool continues_release) {
    const int number = NumberOf(location);
    location.value_ = Traced(value);
    if (!HasHistory()) return;
    History& history = histories_[static_cast<std::size_t>(number)];
    View& view = threads_[running_].view;
    Message message;
    message.value = value;
    const auto index = static_cast<unsigned>(history.values.size());
    Raise(&view, number, index);
    if (Releases(order)) {
      message.view = view;
    } else {
      Raise(&message.view, number, index);
    }
    if (continues_release) schedules::Join(&message.view, history.values.back().view);
    if (order == std::memory_order_seq_cst) history.last_sequential = index;
    history.values.push_back(std::move(message));
  }

  void BeginWait(const Location& condition, const Location& mutex) {
    Step(Kind::kWait, &condition, &mutex);
    Write(mutex, 0, std::memory_order_release, false);
    if (running_ != kMain) threads_[running_].waits_for = &condition;
  }

  void Notify(const Location& condition) {
    Step(Kind::kNotify, &condition);
    for (Thread& thread : threads_) {
      if (thread.waits_for == &condition) thread.waits_for = nullptr;
    }
  }

 private:
  struct Next {
    Kind kind = Kind::kLoad;
    const Location* location = nullptr;
    const Location* other = nullptr;

    bool Touches(const Location* object) const {
      return object != nullptr && (location == object || other == object);
    }
    bool DependsOn(const Next& step) const {
      if (kind == Kind::kFork || step.kind == Kind::kFork) return true;
      if (kind == Kind::kLoad && step.kind == Kind::kLoad) return false;
      return Touches(step.location) || Touches(step.other);
    }
  };
  struct Thread {
    ucontext_t context;
    Next next;
    bool is_finished = false;
    const Location* waits_for = nullptr;
    View view;
  };
  struct Message {
    std::uint64_t value = 0;
    View view;
  };
  struct History {
    std::vector<Message> values;
    unsigned last_sequential = 0;
  };
  struct TraceEntry {
    int thread;
    Kind kind;
    int object;
    std::uint64_t value;
    bool is_stale;
  };
  // A choice that was made, and what remains to be tried.
  struct Choice {
    int options[kMaxThreads];
    int count;
    int taken = 0;  // an index of `options`; for the age of a value, the age
  };

  bool HasHistory() const { return bounds_.stale_reads != 0; }

  std::uint64_t Traced(std::uint64_t value, bool is_stale = false) {
    if (running_ != kMain && !trace_.empty()) {
      trace_.back().value = value;
      trace_.back().is_stale = is_stale;
    }
    return value;
  }

  // The object's number in this execution, which is its first one's when it is asked first.
  int NumberOf(const Location& location) {
    if (location.epoch_ == epoch_) return location.number_;
    if (location.epoch_ != 0) location.value_ = location.first_;
    location.epoch_ = epoch_;
    location.number_ = objects_++;
    if (HasHistory()) {
      if (histories_.size() < static_cast<std::size_t>(objects_)) histories_.emplace_back();
      History& history = histories_[static_cast<std::size_t>(location.number_)];
      history.values.clear();
      history.values.push_back({location.value_, {}});
      history.last_sequential = 0;
    }
    return location.number_;
  }

  void Execute() {
    static std::uint64_t s_epoch = 0;
    epoch_ = ++s_epoch;
    objects_ = 0;
    depth_ = 0;
    steps_ = 0;
    preemptions_ = 0;
    stale_reads_ = 0;
    sleeping_ = 0;
    is_redundant_ = false;
    g_process = 1;
    trace_.clear();
    running_ = kMain;
    threads_[kMain].view.clear();
    program_ = make_();
    count_ = program_->Threads();
    Start();
    if (!is_abandoned_ && count_ > 0) {
      const int first = Choose(-1);
      if (first >= 0) SwitchTo(first);
    }
    if (is_abandoned_) {
      static_cast<void>(program_.release());  // threads are still in it
      return;
    }
    for (int i = 0; i < count_; ++i) schedules::Join(&threads_[kMain].view, threads_[i].view);
    program_->Finish();
    program_.reset();
  }

  // Each thread up to its first step: what it does before nobody else sees.
  void Start() {
    is_starting_ = true;
    for (int i = 0; i < count_ && !is_abandoned_; ++i) {
      Thread& thread = threads_[i];
      thread.is_finished = false;
      thread.waits_for = nullptr;
      thread.view = threads_[kMain].view;
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = stacks_ + kStackSize * static_cast<std::size_t>(i);
      thread.context.uc_stack.ss_size = kStackSize;
      thread.context.uc_link = nullptr;
      makecontext(&thread.context, reinterpret_cast<void (*)()>(&Enter), 1, i);
      SwitchTo(i);
    }
    is_starting_ = false;
  }
  static void Enter(int thread);

  void SwitchTo(int thread) {
    const int from = running_;
    running_ = thread;
    swapcontext(&threads_[from].context, &threads_[thread].context);
  }

  // Lets the chosen thread make its step: perhaps this one.
  void GoOn() {
    const int chosen = Choose(threads_[running_].is_finished ? -1 : running_);
    if (chosen != running_) SwitchTo(chosen < 0 ? kMain : chosen);
  }

  bool IsEnabled(const Thread& thread) {
    if (thread.is_finished || thread.waits_for != nullptr) return false;
    return thread.next.kind != Kind::kLock || Newest(*thread.next.location) == 0;
  }

  // The thread that makes the next step; -1 if all have ended.
  int Choose(int current) {
    Threads enabled = 0;
    bool all_finished = true;
    for (int i = 0; i < count_; ++i) {
      if (IsEnabled(threads_[i])) enabled |= Only(i);
      all_finished = all_finished && threads_[i].is_finished;
    }
    if (enabled == 0) {
      if (!all_finished) Fail("deadlock");
      return -1;
    }
    const int chosen = bounds_.preemptions == kUnbounded ? ChooseUnlessAsleep(enabled, current)
                                                         : ChooseWithinBound(enabled, current);
    return chosen;
  }

  int ChooseWithinBound(Threads enabled, int current) {
    Choice choice;
    choice.count = 0;
    const bool can_go_on = current >= 0 && Has(enabled, current);
    if (can_go_on) choice.options[choice.count++] = current;
    if (!can_go_on || preemptions_ < bounds_.preemptions) {
      for (int i = 0; i < count_; ++i) {
        if (Has(enabled, i) && !(can_go_on && i == current)) choice.options[choice.count++] = i;
      }
    }
    const int chosen = choice.options[Take(choice)];
    if (can_go_on && chosen != current) ++preemptions_;
    return chosen;
  }

  // A thread is asleep if its step was tried before from here, or from where only independent
  // steps were made since: whatever begins with it now was explored then.
  int ChooseUnlessAsleep(Threads enabled, int current) {
    if (is_redundant_) return Lowest(enabled, current);
    Choice choice;
    choice.count = 0;
    const Threads awake = enabled & ~sleeping_;
    if (awake == 0) {
      is_redundant_ = true;  // and goes on to the end, somehow, so that it ends properly
      return Lowest(enabled, current);
    }
    if (current >= 0 && Has(awake, current)) choice.options[choice.count++] = current;
    for (int i = 0; i < count_; ++i) {
      if (Has(awake, i) && i != current) choice.options[choice.count++] = i;
    }
    const int taken = Take(choice);
    const int chosen = choice.options[taken];
    for (int i = 0; i < taken; ++i) sleeping_ |= Only(choice.options[i]);
    for (int i = 0; i < count_; ++i) {
      if (Has(sleeping_, i) && threads_[i].next.DependsOn(threads_[chosen].next)) {
        sleeping_ &= ~Only(i);
      }
    }
    return chosen;
  }

  static int Lowest(Threads enabled, int current) {
    if (current >= 0 && Has(enabled, current)) return current;
    return __builtin_ctz(enabled);
  }

  // How many values older than the newest is read; at most `oldest`.
  unsigned ChooseAge(unsigned oldest) {
    if (oldest == 0 || is_redundant_ || stale_reads_ == bounds_.stale_reads) return 0;
    Choice choice;
    choice.count = static_cast<int>(oldest) + 1;
    const int age = Take(choice);
    if (age != 0) ++stale_reads_;
    return static_cast<unsigned>(age);
  }

  // The option to take: as before, if this choice was made before.
  int Take(const Choice& choice) {
    if (choice.count == 1) return 0;
    if (depth_ == choices_.size()) choices_.push_back(choice);
    const Choice& made = choices_[depth_++];
    if (made.count != choice.count) {
      std::fprintf(stderr, "the program does not do the same for the same choices\n");
      std::abort();
    }
    return made.taken;
  }

  // Goes back to the last choice that has another option. False if there is none.
  bool Backtrack() {
    while (!choices_.empty()) {
      if (++choices_.back().taken < choices_.back().count) return true;
      choices_.pop_back();
    }
    return false;
  }

  const Bounds bounds_;
  const std::function<std::unique_ptr<Program>()>& make_;
  Outcome outcome_;
  char* stacks_ = nullptr;

  // Of the whole exploration.
  std::vector<Choice> choices_;
  Thread threads_[kMaxThreads + 1];
  bool is_abandoned_ = false;

  // Of this execution.
  std::unique_ptr<Program> program_;
  int count_ = 0;
  int running_ = kMain;
  bool is_starting_ = false;
  bool is_redundant_ = false;
  std::size_t depth_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t steps_ = 0;
  int objects_ = 0;
  int preemptions_ = 0;
  int stale_reads_ = 0;
  Threads sleeping_ = 0;
  std::vector<History> histories_;
  std::vector<TraceEntry> trace_;
};

namespace {

Explorer* g_explorer = nullptr;

}  // namespace

void Explorer::Enter(int thread) { g_explorer->RunThread(thread); }

Outcome Explore(const Bounds& bounds, const std::function<std::unique_ptr<Program>()>& make) {
  const auto explorer = std::make_unique<Explorer>(bounds, make);
  g_explorer = explorer.get();
  Outcome outcome = explorer->Explore();
  g_explorer = nullptr;
  return outcome;
}

void Require(bool condition, const char* what) {
  if (!condition) g_explorer->Fail(what);
}

int ThisThread() {
  const int running = g_explorer == nullptr ? kMain : g_explorer->running();
  return running == kMain ? -1 : running;
}

void Fork() {
  if (ThisThread() >= 0) g_explorer->Fork();
}

const unsigned& ThisProcess() { return g_process; }

std::uint64_t ThisExecution() { return g_explorer == nullptr ? 0 : g_explorer->epoch(); }

std::uint64_t Location::Load(std::memory_order order) const {
  return g_explorer == nullptr ? value_ : g_explorer->Load(*this, order);
}

void Location::Store(std::uint64_t value, std::memory_order order) {
  if (g_explorer == nullptr) {
    value_ = value;
    return;
  }
  g_explorer->Step(Kind::kStore, this);
  g_explorer->Write(*this, value, order, /*continues_release=*/false);
}

void Location::BeginModify() {
  if (g_explorer != nullptr) g_explorer->Step(Kind::kModify, this);
}

std::uint64_t Location::Newest() const {
  return g_explorer == nullptr ? value_ : g_explorer->Newest(*this);
}

void Location::EndModify(std::uint64_t value, std::memory_order order) {
  if (g_explorer == nullptr) {
    value_ = value;
    return;
  }
  g_explorer->Read(*this, order);
  g_explorer->Write(*this, value, order, /*continues_release=*/true);
}

bool Location::CompareExchange(std::uint64_t* expected, std::uint64_t desired,
                               std::memory_order success, std::memory_order failure) {
  BeginModify();
  const std::uint64_t now = Newest();
  if (now == *expected) {
    EndModify(desired, success);
    return true;
  }
  if (g_explorer != nullptr) g_explorer->Read(*this, failure);
  *expected = now;
  return false;
}

void Location::Lock() {
  if (g_explorer != nullptr) g_explorer->Step(Kind::kLock, this);
  if (Newest() != 0) std::abort();  // locked outside of all threads
  EndModify(1, std::memory_order_acquire);
}

bool Location::TryLock() {
  if (g_explorer != nullptr) g_explorer->Step(Kind::kTryLock, this);
  if (Newest() != 0) return false;
  EndModify(1, std::memory_order_acquire);
  return true;
}

void Location::Unlock() {
  if (g_explorer == nullptr) {
    value_ = 0;
    return;
  }
  g_explorer->Step(Kind::kUnlock, this);
  g_explorer->Write(*this, 0, std::memory_order_release, /*continues_release=*/false);
}

void Location::Wait(Location* mutex) {
  if (g_explorer == nullptr) std::abort();
  g_explorer->BeginWait(*this, *mutex);
}

void Location::NotifyAll() {
  if (g_explorer != nullptr) g_explorer->Notify(*this);
}

}  // namespace schedules
