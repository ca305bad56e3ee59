// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work that is not done yet: what waits for what, and who does it when.

#ifndef CUDASIM_DRIVER_STREAM_SCHEDULE_H_
#define CUDASIM_DRIVER_STREAM_SCHEDULE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "driver/context/context.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {

// Of what another process does.
enum class Progress { kPending, kDone, kAbandoned };

// What is to be done.
struct Job {
  Incarnation incarnation;    // nothing is done once it ended
  std::function<void()> run;  // null: nothing, as of an event's record
  bool is_host = false;       // a function of the user's, which may wait for anything
  // Everything that is submitted to the context of its stream later waits for it.
  bool holds_context = false;
  std::function<Progress()> elsewhere;  // what it waits for, too; or null
};

// A job that was queued.
class Task {
 public:
  using Clock = std::chrono::steady_clock;

  bool IsDone() const { return is_done_.load(std::memory_order_acquire); }
  // When it was done, if it is.
  Clock::time_point when() const { return when_; }

 private:
  friend class Queue;

  Stream stream_;
  Job job_;
  std::uint64_t number_ = 0;  // in the order of submission
  size_t waits_for_ = 0;      // tasks, of which it is a follower
  std::vector<std::shared_ptr<Task>> followers_;
  Clock::time_point when_;
  std::atomic<bool> is_done_{false};
};
using TaskPointer = std::shared_ptr<Task>;

// Schedule
//
// Work waits for what was submitted to its stream before it. Work of a context's legacy stream
// waits for that of its blocking streams, too, and theirs for that of the legacy stream.
//
// By default, work that waits for nothing is done in the call that submits it, except for functions
// of the user's: a thread of the driver's, which is started for the first of them, runs them one
// after another. What waits for them is done by that thread, or by those that wait for it.
//
// After Set(), no work is done in the call that submits it. The device does one piece of work after
// another, chosen at random among those that wait for nothing, and each takes a number of driver
// calls, whichever threads make them: unlike time, calls are the same when the program is run
// again. The work is done by the call at which it is due, and by calls that wait for it, which take
// no time. A function of the user's that does not return within 100 ms no longer keeps the device
// from other work. A program that makes no call for a second finds all work done.
//
// Work that the process does not wait for before its end may be left undone.
//
// Threads: any; one mutex, which nothing takes while the schedule is idle.
class Schedule {
 public:
  // Whether all work is done, and more would be done by the call that submits it.
  static bool IsIdle() { return busy_.load(std::memory_order_acquire) == 0; }

  // Does the job, or queues it behind what its stream waits for and `after`. Null if it is done.
  static TaskPointer Submit(const Stream& stream, Job job, std::vector<TaskPointer> after = {});
  // The same for a job of no stream, which waits for all work of the context.
  static TaskPointer SubmitBehind(const Incarnation& context, Job job);
  // The same for a job of no stream, for which everything that is submitted to the context later
  // waits.
  static TaskPointer SubmitAhead(const Incarnation& context, Job job, const TaskPointer& after);

  // A task that is done once another process has done something; null if it has. It is asked for
  // every millisecond while work is done or waited for.
  static TaskPointer Await(const Incarnation& context, std::function<Progress()> elsewhere);

  // Whether the stream's work is done; a legacy stream's includes what more of it would wait for.
  static bool IsDone(const Stream& stream);

  // Return when the work is done. A function of the user's panics where only it, or a later one,
  // could do the work.
  static void Wait(const TaskPointer& task);  // null: done
  static void Wait(const Stream& stream);
  static void WaitForContext(std::uint64_t context_id);  // its green contexts included
  static void WaitForAll();

  // See Sim::ScheduleWork.
  static void Set(std::uint64_t seed, unsigned calls);
  // Every call, once it is known to be served.
  static void Tick() {
    if (busy_.load(std::memory_order_relaxed) >= kMode) CountTick();
  }

  static void End();
  static void ForgetInChild();

 private:
  friend class Queue;
  static void CountTick();

  // The tasks that are not done, and the mode.
  static constexpr std::uint64_t kMode = std::uint64_t{1} << 63;
  static std::atomic<std::uint64_t> busy_;
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_STREAM_SCHEDULE_H_
