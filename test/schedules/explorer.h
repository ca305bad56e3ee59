// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Explores the schedules of a small program of several threads, one after another, by depth-first
// search. The threads are fibers of one thread, and take turns at the operations on atomics,
// mutexes and condition variables of test/schedules/concurrency.h: an operation is one step, and
// which thread makes the next step is a choice. Sources of the library that use
// lib/core/concurrency.h are explored as they are, compiled with these in place of the standard
// library's.
//
//   struct TwoIncrements : schedules::Program {
//     Atomic<int> count{0};
//     int Threads() const override { return 2; }
//     void Run(int) override { count.fetch_add(1); }
//     void Finish() override { schedules::Require(count.load() == 2, "an increment was lost"); }
//   };
//   const schedules::Outcome outcome =
//       schedules::Explore({}, [] { return std::make_unique<TwoIncrements>(); });
//
// Note [What is explored]
// ~~~~~~~~~~~~~~~~~~~~~~~
// With no bound on preemptions, every schedule is explored up to the order of steps that do not
// depend on each other (on different objects, or both only read), by sleep sets (Godefroid,
// "Partial- Order Methods for the Verification of Concurrent Systems", 1996). With a bound, every
// schedule is explored that takes the processor away from a thread at most so many times while it
// could have gone on.
//
// With stale reads, a load may read any value that the C++ memory model lets it read, as far as
// that follows from happens-before and coherence: each thread has a view, the oldest value of each
// object that it may still read; a release store carries its thread's view, and an acquire load
// that reads from it takes that over; read-modify-writes read the newest value and continue a
// release sequence; a sequentially consistent load reads nothing older than the last
// sequentially consistent store to its object. The bound is on the number of loads of an
// execution that read something other than the newest value.
//
// A thread that forks goes on alone, in the child, from wherever the others were: what the parent
// does then is explored by the same program without the fork.
//
// Not modelled: stores that take effect later than in program order (a store is the newest value
// of its object at once), exchanges that fail though the value is the expected one, fences, and
// races on what is not atomic.

#ifndef CUGUEST_TEST_SCHEDULES_EXPLORER_H_
#define CUGUEST_TEST_SCHEDULES_EXPLORER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace schedules {

constexpr int kUnbounded = -1;

struct Bounds {
  int preemptions = kUnbounded;
  int stale_reads = 0;  // or kUnbounded
};

struct Outcome {
  std::uint64_t executions = 0;  // to the end of the program
  std::uint64_t redundant = 0;   // cut off, because an equivalent one was explored
  std::uint64_t steps = 0;
  bool is_complete = false;  // everything within the bounds was explored
  std::string failure;       // of the first execution that failed: why, and its steps

  [[nodiscard]] bool failed() const { return !failure.empty(); }
};

// What is explored. It is made anew for every execution, by one thread; so is Finish() run, when
// all threads have ended. It must do the same whenever the same choices are made.
class Program {
 public:
  virtual ~Program() = default;
  [[nodiscard]] virtual int Threads() const = 0;
  virtual void Run(int thread) = 0;
  virtual void Finish() {}
};

// Until something fails: a requirement, a deadlock, or an execution that does not end.
Outcome Explore(const Bounds& bounds, const std::function<std::unique_ptr<Program>()>& make);

// In a program: fails the execution unless `condition` holds.
void Require(bool condition, const char* what);

// The thread that is running: from 0; -1 outside of all threads.
int ThisThread();

// In a program: from here on it is the one of a forked child, which has this thread and no other. A
// step that depends on all others.
void Fork();

// The number of the process that is running: 1, and 2 in a child. Where it is does not change.
const unsigned& ThisProcess();

// Which execution this is; 0 outside of Explore().
std::uint64_t ThisExecution();

// A variable that each thread has, and code outside of all threads; as new in every execution.
template <typename T>
class PerThread {
 public:
  operator T&() {  // NOLINT(google-explicit-constructor): as a variable
    const auto index = static_cast<std::size_t>(ThisThread() + 1);
    if (executions_[index] != ThisExecution()) values_[index] = T();
    executions_[index] = ThisExecution();
    return values_[index];
  }

 private:
  static constexpr std::size_t kThreads = 5;
  std::uint64_t executions_[kThreads] = {};
  T values_[kThreads] = {};
};

// An object that threads share: the values it has had, in this execution. Outside of Explore()
// an ordinary variable. One that outlives an execution begins the next one with its first value.
class Location {
 public:
  explicit constexpr Location(std::uint64_t value) : first_(value), value_(value) {}
  Location(const Location&) = delete;
  Location& operator=(const Location&) = delete;

  std::uint64_t Load(std::memory_order order) const;
  void Store(std::uint64_t value, std::memory_order order);
  // Returns the value before. `change` is given that one.
  template <typename Change>
  std::uint64_t Modify(std::memory_order order, Change change) {
    BeginModify();
    const std::uint64_t before = Newest();
    EndModify(change(before), order);
    return before;
  }
  bool CompareExchange(std::uint64_t* expected, std::uint64_t desired, std::memory_order success,
                       std::memory_order failure);

  // As a mutex: 0 is unlocked.
  void Lock();
  bool TryLock();
  void Unlock();
  // As a condition variable. The mutex is unlocked, and the wait begun, in one step.
  void Wait(Location* mutex);
  void NotifyAll();

 private:
  friend class Explorer;

  void BeginModify();
  std::uint64_t Newest() const;
  void EndModify(std::uint64_t value, std::memory_order order);

  std::uint64_t first_;
  mutable std::uint64_t value_;      // the newest
  mutable std::uint64_t epoch_ = 0;  // the execution that `number_` is of
  mutable int number_ = 0;
};

}  // namespace schedules

#endif  // CUGUEST_TEST_SCHEDULES_EXPLORER_H_
