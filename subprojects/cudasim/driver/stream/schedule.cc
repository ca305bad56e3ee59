// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/stream/schedule.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "driver/context/device.h"
#include "driver/panic.h"

namespace cudasim::driver {

using QueueLock = std::unique_lock<std::mutex>;

std::atomic<std::uint64_t> Schedule::busy_{0};

namespace {

// How long the device waits for a function of the user's, and a program's silence that it takes for
// a wait.
constexpr std::chrono::milliseconds kPatience{100};
constexpr std::chrono::seconds kSilence{1};

// How often another process is looked at.
constexpr std::chrono::milliseconds kGlance{1};

thread_local bool is_drivers_thread = false;

bool IsBlocking(const Stream& stream) { return (stream.flags & CU_STREAM_NON_BLOCKING) == 0; }

// Of the context, or of a green context that it owns.
bool IsIn(std::uint64_t context_id, const Incarnation& place) {
  return place.id == context_id || OwnerOf(place).id == context_id;
}

// A stream of its own for a job that belongs to none.
Stream StreamOfNobody(const Incarnation& context) {
  Stream stream;
  stream.incarnation = context;
  stream.flags = CU_STREAM_NON_BLOCKING;
  stream.id = NextStreamId();
  return stream;
}

}  // namespace

// The tasks that are not done. Each stream's wait for each other in a row, of which the last one is
// known, and those that wait for nothing are `ready_`.
class Queue {
 public:
  // Never destroyed: the driver's thread works to the end of the process.
  static Queue& The() {
    static auto& queue = *new Queue;
    return queue;
  }

  TaskPointer Submit(const Stream& stream, Job job, std::vector<TaskPointer> after) {
    QueueLock lock(mutex_);
    if (has_ended_) return nullptr;
    for (const TaskPointer& task : Before(stream)) after.push_back(task);
    const auto done = [](const TaskPointer& task) { return task == nullptr || task->IsDone(); };
    after.erase(std::remove_if(after.begin(), after.end(), done), after.end());
    if (after.empty() && calls_per_task_ == 0 && !job.is_host && !job.elsewhere) {
      lock.unlock();
      if (job.run) job.run();
      return nullptr;
    }
    if (job.is_host || job.elsewhere || calls_per_task_ != 0) StartThread();
    const TaskPointer task = Add(stream, std::move(job), after);
    changed_.notify_all();
    return task;
  }

  TaskPointer SubmitBehind(const Incarnation& context, Job job) {
    std::vector<TaskPointer> after;
    {
      const QueueLock lock(mutex_);
      for (const auto& [id, task] : last_) {
        if (IsIn(context.id, task->stream_.incarnation)) after.push_back(task);
      }
    }
    return Submit(StreamOfNobody(context), std::move(job), std::move(after));
  }

  bool IsDone(const Stream& stream) {
    const QueueLock lock(mutex_);
    return Awaited(stream).empty();
  }

  void Wait(const TaskPointer& task) {
    QueueLock lock(mutex_);
    Wait(task, &lock);
  }
  void Wait(const Stream& stream) {
    QueueLock lock(mutex_);
    for (const TaskPointer& task : Awaited(stream)) Wait(task, &lock);
  }
  // Also for the nodes of its graphs, wherever they were launched.
  void WaitForContext(std::uint64_t id) {
    WaitForThose([=](const Task& task) {
      return IsIn(id, task.stream_.incarnation) || IsIn(id, task.job_.incarnation);
    });
  }
  void WaitForAll() {
    WaitForThose([](const Task&) { return true; });
  }

  void Set(std::uint64_t seed, unsigned calls) {
    const QueueLock lock(mutex_);
    random_.seed(seed);
    calls_per_task_ = calls;
    due_ = now_ + calls;
    if (calls != 0) {
      Schedule::busy_.fetch_or(Schedule::kMode);
    } else {
      Schedule::busy_.fetch_and(~Schedule::kMode);
    }
    changed_.notify_all();
  }

  void Tick() {
    QueueLock lock(mutex_);
    if (++now_ < due_ || is_stepping_) return;
    Admit(&lock);
    if (ready_.empty()) return;
    Step(&lock);
    due_ = now_ + calls_per_task_;
  }

  void End() {
    const QueueLock lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }

 private:
  template <typename Predicate>
  void WaitForThose(const Predicate& predicate) {
    std::vector<TaskPointer> tasks;
    QueueLock lock(mutex_);
    for (const auto& entry : tasks_) {
      if (predicate(*entry.second)) tasks.push_back(entry.second);
    }
    for (const TaskPointer& task : tasks) Wait(task, &lock);
  }

  // What more work of the stream would wait for.
  std::vector<TaskPointer> Before(const Stream& stream) const {
    std::vector<TaskPointer> tasks;
    for (const auto& [id, task] : last_) {
      const Stream& other = task->stream_;
      const bool same_context = other.incarnation.id == stream.incarnation.id;
      const bool legacy =
          (other.is_legacy && IsBlocking(stream)) || (stream.is_legacy && IsBlocking(other));
      const bool held = task->job_.holds_context && IsIn(other.incarnation.id, stream.incarnation);
      if (id == stream.id || (same_context && legacy) || held) tasks.push_back(task);
    }
    return tasks;
  }

  // Not measured of the legacy stream.
  std::vector<TaskPointer> Awaited(const Stream& stream) const {
    if (stream.is_legacy) return Before(stream);
    const auto found = last_.find(stream.id);
    return found != last_.end() ? std::vector<TaskPointer>{found->second}
                                : std::vector<TaskPointer>{};
  }

  TaskPointer Add(const Stream& stream, Job job, const std::vector<TaskPointer>& after) {
    const auto task = std::make_shared<Task>();
    task->stream_ = stream;
    task->job_ = std::move(job);
    task->number_ = next_number_++;
    task->waits_for_ = after.size();
    for (const TaskPointer& before : after) before->followers_.push_back(task);
    last_[stream.id] = task;
    tasks_.emplace(task->number_, task);
    if (after.empty()) MakeReady(task);
    Schedule::busy_.fetch_add(1, std::memory_order_release);
    return task;
  }

  void MakeReady(const TaskPointer& task) {
    if (task->job_.elsewhere) {
      elsewhere_.emplace(task->number_, task);
      return;
    }
    if (ready_.empty()) due_ = now_ + calls_per_task_;
    ready_.emplace(task->number_, task);
  }

  // Makes ready what another process has done its part of.
  void Admit(QueueLock* lock) {
    for (auto it = elsewhere_.begin(); it != elsewhere_.end();) {
      const TaskPointer task = it->second;
      const Progress progress = task->job_.elsewhere();
      if (progress == Progress::kAbandoned) {
        lock->unlock();
        PanicHandle(nullptr,
                    "work waits for an event whose recording process ended before the record was "
                    "done; it may wait for ever on a real driver");
      }
      if (progress == Progress::kPending) {
        ++it;
        continue;
      }
      task->job_.elsewhere = nullptr;
      it = elsewhere_.erase(it);
      MakeReady(task);
    }
  }

  // Until something changes, here or in another process.
  void WaitForChange(QueueLock* lock) {
    if (elsewhere_.empty()) {
      changed_.wait(*lock);
    } else {
      changed_.wait_for(*lock, kGlance);
    }
  }

  // Helps until the task is done.
  void Wait(const TaskPointer& task, QueueLock* lock) {
    while (!task->IsDone() && !has_ended_) {
      if (Step(lock)) continue;
      if (is_drivers_thread && working_ == 0 && !is_stepping_ && elsewhere_.empty()) {
        lock->unlock();
        PanicHandle(nullptr,
                    "a callback waits for work that waits for it, or for a later callback; a real "
                    "driver hangs here");
      }
      WaitForChange(lock);
    }
  }

  // One piece of work, if there is one that this thread may do now.
  bool Step(QueueLock* lock) {
    if (has_ended_ || is_stepping_) return false;
    Admit(lock);
    if (calls_per_task_ != 0) return StepAtRandom(lock);
    const auto found = std::find_if(ready_.begin(), ready_.end(),
                                    [](const auto& entry) { return !entry.second->job_.is_host; });
    if (found == ready_.end()) return false;
    Do(Take(found), lock);
    return true;
  }

  bool StepAtRandom(QueueLock* lock) {
    if (ready_.empty()) return false;
    const TaskPointer task =
        Take(std::next(ready_.begin(), static_cast<std::ptrdiff_t>(random_() % ready_.size())));
    is_stepping_ = true;
    if (task->job_.is_host) {
      called_.push_back(task);
      changed_.notify_all();
      if (!is_drivers_thread) {
        changed_.wait_for(*lock, kPatience, [&] { return task->IsDone() || has_ended_; });
      }
    } else {
      Do(task, lock);
    }
    is_stepping_ = false;
    changed_.notify_all();
    return true;
  }

  using Tasks = std::map<std::uint64_t, TaskPointer>;  // by number
  TaskPointer Take(Tasks::iterator it) {
    TaskPointer task = it->second;
    ready_.erase(it);
    return task;
  }

  void Do(const TaskPointer& task, QueueLock* lock) {
    std::function<void()> run = std::exchange(task->job_.run, nullptr);
    const bool is_host = task->job_.is_host;
    if (!is_host) ++working_;
    lock->unlock();
    const bool is_void =
        !task->job_.incarnation.IsAlive() || (!is_host && StickyError() != CUDA_SUCCESS);
    if (run && !is_void) run();
    run = nullptr;  // what it keeps may be destroyed by that
    lock->lock();
    if (!is_host) --working_;
    Finish(task);
  }

  void Finish(const TaskPointer& task) {
    task->when_ = Task::Clock::now();
    task->is_done_.store(true, std::memory_order_release);
    for (TaskPointer& follower : std::exchange(task->followers_, {})) {
      if (--follower->waits_for_ == 0) MakeReady(follower);
    }
    tasks_.erase(task->number_);
    const auto last = last_.find(task->stream_.id);
    if (last != last_.end() && last->second == task) last_.erase(last);
    Schedule::busy_.fetch_sub(1, std::memory_order_release);
    changed_.notify_all();
  }

  void StartThread() {
    if (std::exchange(has_thread_, true)) return;
    std::thread([this] { BeDriversThread(); }).detach();
  }

  [[noreturn]] void BeDriversThread() {
    is_drivers_thread = true;
    RunNoHandlerInPanic();
    QueueLock lock(mutex_);
    for (;;) {
      const std::uint64_t before = now_;
      if (calls_per_task_ == 0) Admit(&lock);
      if (const TaskPointer task = NextForDriversThread()) {
        Do(task, &lock);
      } else if (calls_per_task_ == 0 || (ready_.empty() && elsewhere_.empty())) {
        WaitForChange(&lock);
      } else if (changed_.wait_for(lock, kSilence) == std::cv_status::timeout) {
        while (now_ == before && Step(&lock)) {
        }
      }
    }
  }

  TaskPointer NextForDriversThread() {
    if (has_ended_) return nullptr;
    if (!called_.empty()) {
      TaskPointer task = called_.front();
      called_.pop_front();
      return task;
    }
    return calls_per_task_ == 0 && !ready_.empty() ? Take(ready_.begin()) : nullptr;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, TaskPointer> last_;  // by stream
  Tasks tasks_;                                // all
  Tasks ready_;                                // those that wait for nothing, and nobody does
  Tasks elsewhere_;                            // those that wait for another process only
  std::deque<TaskPointer> called_;             // functions that the driver's thread is to run
  std::uint64_t next_number_ = 1;
  size_t working_ = 0;  // threads that do work of the device
  bool has_thread_ = false;
  bool has_ended_ = false;

  // The mode.
  unsigned calls_per_task_ = 0;  // 0: the default one
  std::mt19937_64 random_;
  std::uint64_t now_ = 0;  // calls
  std::uint64_t due_ = 0;
  bool is_stepping_ = false;
};

TaskPointer Schedule::Submit(const Stream& stream, Job job, std::vector<TaskPointer> after) {
  return Queue::The().Submit(stream, std::move(job), std::move(after));
}

TaskPointer Schedule::SubmitBehind(const Incarnation& context, Job job) {
  return Queue::The().SubmitBehind(context, std::move(job));
}

TaskPointer Schedule::SubmitAhead(const Incarnation& context, Job job, const TaskPointer& after) {
  job.holds_context = true;
  return Submit(StreamOfNobody(context), std::move(job), {after});
}

TaskPointer Schedule::Await(const Incarnation& context, std::function<Progress()> elsewhere) {
  if (elsewhere() == Progress::kDone) return nullptr;
  Job job;
  job.incarnation = context;
  job.elsewhere = std::move(elsewhere);
  return Submit(StreamOfNobody(context), std::move(job));
}

bool Schedule::IsDone(const Stream& stream) { return IsIdle() || Queue::The().IsDone(stream); }

void Schedule::Wait(const TaskPointer& task) {
  if (task != nullptr && !task->IsDone()) Queue::The().Wait(task);
}

void Schedule::Wait(const Stream& stream) {
  if (!IsIdle()) Queue::The().Wait(stream);
}

void Schedule::WaitForContext(std::uint64_t context_id) {
  if (!IsIdle()) Queue::The().WaitForContext(context_id);
}

void Schedule::WaitForAll() {
  if (!IsIdle()) Queue::The().WaitForAll();
}

void Schedule::Set(std::uint64_t seed, unsigned calls) { Queue::The().Set(seed, calls); }

void Schedule::CountTick() { Queue::The().Tick(); }

void Schedule::End() {
  if (!IsIdle()) Queue::The().End();
}

// The child has neither the thread nor, for certain, the mutex.
void Schedule::ForgetInChild() { busy_.store(0); }

}  // namespace cudasim::driver
