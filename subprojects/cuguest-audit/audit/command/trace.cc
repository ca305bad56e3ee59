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

int TraceWriter::NumberOf(const ThreadOfProcess& where) {
  int& number = threads_[where];
  if (number == 0) {
    number = ++last_number_;
    Write(Begin("M", where.pid, number, "thread_name") +
          ",\"args\":{\"name\":" + JsonString("thread " + std::to_string(where.thread)) + "}}");
  }
  return number;
}

void TraceWriter::NameProcess(int pid, const std::string& name) {
  Write(Begin("M", pid, 0, "process_name") + ",\"args\":{\"name\":" + JsonString(name) + "}}");
}

void TraceWriter::OnStackChange(const StackChange& change) {
  if (!file_.is_open()) return;
  const int pid = change.where.pid;
  const int number = NumberOf(change.where);
  for (size_t i = change.before.size(); i-- > change.kept;) {
    Write(Begin("E", pid, number, ContextLabel(change.before[i])) + TimeText(change.time) + "}");
  }
  for (size_t i = change.kept; i < change.after.size(); ++i) {
    Write(Begin("B", pid, number, ContextLabel(change.after[i])) + TimeText(change.time) + "}");
  }
}

void TraceWriter::AddInstant(const ThreadOfProcess& where, Time time, const std::string& name,
                             const Arguments& arguments) {
  if (!file_.is_open()) return;
  std::string event =
      Begin("i", where.pid, NumberOf(where), name) + TimeText(time) + ",\"s\":\"t\",\"args\":{";
  for (const auto& [key, value] : arguments) {
    event += (event.back() == '{' ? "" : ",") + JsonString(key) + ":" + JsonString(value);
  }
  Write(event + "}}");
}

void TraceWriter::AddCounter(int pid, Time time, const std::string& name, std::uint64_t value) {
  Write(Begin("C", pid, 0, name) + TimeText(time) +
        ",\"args\":{\"value\":" + std::to_string(value) + "}}");
}

std::string TraceWriter::Close() {
  file_.Write(empty_ ? "[]\n" : "\n]\n");
  return file_.Close();
}

}  // namespace cuguest::audit
