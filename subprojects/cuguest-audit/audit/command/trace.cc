// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/trace.h"

#include <algorithm>
#include <cstdio>

#include "audit/command/json.h"

namespace cuguest::audit {

// An event up to its name.
std::string TraceWriter::Begin(const char* phase, int pid, int thread, const std::string& name) {
  return std::string("{\"ph\":\"") + phase + "\",\"pid\":" + std::to_string(pid) +
         ",\"tid\":" + std::to_string(thread) + ",\"name\":" + JsonString(name);
}

// In microseconds.
std::string TraceWriter::TimeText(Time time) {
  if (!has_begun_) begin_ = time;
  has_begun_ = true;
  const Time since = std::max(time, begin_) - begin_;
  char text[40];
  std::snprintf(text, sizeof(text), ",\"ts\":%llu.%03llu",
                static_cast<unsigned long long>(since / 1000),
                static_cast<unsigned long long>(since % 1000));
  return text;
}

void TraceWriter::Write(const std::string& event) {
  file_.Write((empty_ ? "[\n" : ",\n") + event);
  empty_ = false;
}

TraceWriter::Thread& TraceWriter::ThreadOf(TraceProcess process, std::uint32_t thread) {
  Thread& found = threads_[{process.number, thread}];
  if (found.number == 0) {
    found.number = ++last_number_;
    Write(Begin("M", process.pid, found.number, "thread_name") +
          ",\"args\":{\"name\":" + JsonString("thread " + std::to_string(thread)) + "}}");
  }
  return found;
}

void TraceWriter::NameProcess(int pid, const std::string& name) {
  Write(Begin("M", pid, 0, "process_name") + ",\"args\":{\"name\":" + JsonString(name) + "}}");
}

void TraceWriter::CloseTo(size_t depth, int pid, Time time, Thread* thread) {
  for (; thread->stack.size() > depth; thread->stack.pop_back()) {
    Write(Begin("E", pid, thread->number, thread->stack.back()) + TimeText(time) + "}");
  }
}

void TraceWriter::SetStack(TraceProcess process, std::uint32_t thread, Time time,
                           const std::vector<std::string>& stack) {
  if (!file_.is_open()) return;
  Thread& known = ThreadOf(process, thread);
  const size_t common = std::min(known.stack.size(), stack.size());
  const auto differs = std::mismatch(
      stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(common), known.stack.begin());
  CloseTo(static_cast<size_t>(differs.first - stack.begin()), process.pid, time, &known);
  while (known.stack.size() < stack.size()) {
    const std::string& name = stack[known.stack.size()];
    Write(Begin("B", process.pid, known.number, name) + TimeText(time) + "}");
    known.stack.push_back(name);
  }
}

void TraceWriter::AddInstant(TraceProcess process, std::uint32_t thread, Time time,
                             const std::string& name, const Arguments& arguments) {
  if (!file_.is_open()) return;
  std::string event = Begin("i", process.pid, ThreadOf(process, thread).number, name) +
                      TimeText(time) + ",\"s\":\"t\",\"args\":{";
  for (const auto& [key, value] : arguments) {
    event += (event.back() == '{' ? "" : ",") + JsonString(key) + ":" + JsonString(value);
  }
  Write(event + "}}");
}

void TraceWriter::AddCounter(int pid, Time time, const std::string& name, std::uint64_t value) {
  Write(Begin("C", pid, 0, name) + TimeText(time) +
        ",\"args\":{\"value\":" + std::to_string(value) + "}}");
}

void TraceWriter::EndThread(TraceProcess process, std::uint32_t thread, Time time) {
  const auto found = threads_.find({process.number, thread});
  if (found == threads_.end()) return;
  CloseTo(0, process.pid, time, &found->second);
  threads_.erase(found);
}

void TraceWriter::EndProcess(TraceProcess process, Time time) {
  for (auto& [where, thread] : threads_) {
    if (where.first == process.number) CloseTo(0, process.pid, time, &thread);
  }
}

std::string TraceWriter::Close() {
  file_.Write(empty_ ? "[]\n" : "\n]\n");
  return file_.Close();
}

}  // namespace cuguest::audit
