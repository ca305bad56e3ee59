// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/log.h"

#include <charconv>
#include <cstdio>
#include <iterator>
#include <set>
#include <utility>

namespace cuguest::audit {
namespace {

constexpr char kMagic[] = "cuguest-audit-log ";
constexpr char kEnd[] = "end";
constexpr std::size_t kLongestLine = std::size_t{1} << 22;

constexpr const char* kEventKinds[] = {"call",     "entered",    "check",       "context",
                                       "used",     "thread_end", "process_end", "initialized",
                                       "unloaded", "made",       "stale"};

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '\n') {
      escaped += '\\';
    }
    escaped += c == '\n' ? 'n' : c;
  }
  return escaped;
}

bool Unescape(std::string_view text, std::string* plain) {
  plain->clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      *plain += text[i];
    } else if (++i < text.size() && (text[i] == '\\' || text[i] == 'n')) {
      *plain += text[i] == 'n' ? '\n' : '\\';
    } else {
      return false;
    }
  }
  return true;
}

std::string WordOf(std::string text) {
  for (char& c : text) {
    c = c == ' ' || c == '\n' ? '_' : c;
  }
  return text.empty() ? "-" : text;
}

// The text before the next `end`, which it takes away from `rest` with it.
std::string_view Take(std::string_view* rest, char end) {
  const std::size_t at = rest->find(end);
  const std::string_view taken = rest->substr(0, at);
  rest->remove_prefix(at == std::string_view::npos ? rest->size() : at + 1);
  return taken;
}

template <typename Number>
bool Parse(std::string_view text, Number* number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::size_t HashOf(const Chain& chain) {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (const Frame& frame : chain) {
    for (const std::uint64_t number : {std::uint64_t{frame.object}, frame.offset, frame.address}) {
      hash = (hash ^ number) * 0xff51afd7ed558ccd;
      hash ^= hash >> 32;
    }
  }
  return hash;
}

bool Same(const Chain& a, const Chain& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].object != b[i].object || a[i].offset != b[i].offset || a[i].address != b[i].address) {
      return false;
    }
  }
  return true;
}

}  // namespace

LogWriter::LogWriter(std::string* out) : out_(out) {
  *out_ += kMagic + std::to_string(kLogVersion) + "\n";
}

void LogWriter::OnProcess(const Process& process) {
  process_ = process.number;
  chains_[process_].resize(kLogChains);
  *out_ += "process " + std::to_string(process.number) + " " + std::to_string(process.pid) + " " +
           std::to_string(process.parent) + (process.forked ? " forked " : " - ") +
           std::to_string(process.start_ns) + " " + Escaped(process.program) + "\n";
}

void LogWriter::OnSource(std::uint32_t process, const std::string& name) {
  Switch(process);
  *out_ += "source " + Escaped(name) + "\n";
}

void LogWriter::OnNote(std::uint32_t process, const std::string& text) {
  Switch(process);
  *out_ += "note " + Escaped(text) + "\n";
}

void LogWriter::OnUnaudited(std::uint32_t process, const std::string& why) {
  Switch(process);
  *out_ += "unaudited " + Escaped(why) + "\n";
}

void LogWriter::OnLimit(std::uint32_t process, const std::string& text) {
  Switch(process);
  *out_ += "limit " + Escaped(text) + "\n";
}

void LogWriter::OnLoss(std::uint32_t process, const Loss& loss) {
  Switch(process);
  *out_ += "lost " + std::to_string(loss.events) + " " + std::to_string(loss.records) + "\n";
}

void LogWriter::OnObject(std::uint32_t process, std::uint32_t index, const Object& object) {
  Switch(process);
  std::string word = WordOf(object.build_id);
  const bool is_pythons = object.package != 0 || !object.function.empty();
  if (!object.soname.empty() || is_pythons) {
    word += ":" + (object.soname.empty() ? "" : WordOf(object.soname));
  }
  if (is_pythons) word += ":" + std::to_string(object.package);
  if (!object.function.empty()) word += ":" + WordOf(object.function);
  *out_ += "object " + std::to_string(index) + " " + word + " " + Escaped(object.path) + "\n";
}

void LogWriter::OnEvent(std::uint32_t process, const Event& event) {
  Switch(process);
  NameThread(event);
  const std::size_t chain =
      event.chain == nullptr || event.chain->empty() ? 0 : NumberOf(*event.chain);
  *out_ += std::string(kEventKinds[static_cast<std::size_t>(event.kind)]) + " " +
           std::to_string(event.thread) + " " + std::to_string(event.time_ns) + " " +
           WordOf(event.name);
  const auto add = [&](const char* name, auto number, auto unless) {
    if (number != unless) {
      *out_ += std::string(" ") + name + "=" + std::to_string(number);
    }
  };
  add("result", event.result, 0);
  add("before", event.before, 0u);
  add("after", event.after, 0u);
  add("context", event.context, 0u);
  add("device", event.device, -1);
  add("primary", static_cast<int>(event.primary), 0);
  add("runtime", static_cast<int>(event.runtime), 0);
  add("setting", event.setting, -1);
  add("value", event.value, 0u);
  add("old", event.old_value, 0u);
  add("chain", chain, 0u);
  *out_ += "\n";
}

void LogWriter::End() { *out_ += kEnd + std::string("\n"); }

void LogWriter::Switch(std::uint32_t process) {
  if (process != process_) {
    process_ = process;
    *out_ += "process " + std::to_string(process) + "\n";
  }
}

void LogWriter::NameThread(const Event& event) {
  const auto thread = std::make_pair(process_, event.thread);
  if (event.os_thread != nullptr) {
    std::shared_ptr<const OsThread>& known = threads_[thread];
    if (known != event.os_thread) {
      *out_ += "thread " + std::to_string(event.thread) + " " +
               std::to_string(event.os_thread->id) + " " + Escaped(event.os_thread->name) + "\n";
    }
    known = event.os_thread;
  }
  if (event.kind == EventKind::kThreadEnd) threads_.erase(thread);
}

std::size_t LogWriter::NumberOf(const Chain& chain) {
  std::vector<Chain>& chains = chains_[process_];
  chains.resize(kLogChains);
  const std::size_t number = 1 + HashOf(chain) % (kLogChains - 1);
  if (!Same(chains[number], chain)) {
    chains[number] = chain;
    *out_ += "chain " + std::to_string(number);
    for (const Frame& frame : chain) {
      char text[64];
      std::snprintf(text, sizeof(text), " %u+%llx@%llx", static_cast<unsigned>(frame.object),
                    static_cast<unsigned long long>(frame.offset),
                    static_cast<unsigned long long>(frame.address));
      *out_ += text;
    }
    *out_ += "\n";
  }
  return number;
}

struct LogReader::State {
  struct ProcessState {
    std::set<std::uint32_t> objects;
    std::map<std::uint32_t, std::shared_ptr<const OsThread>> threads;
    std::vector<std::shared_ptr<const Chain>> chains =
        std::vector<std::shared_ptr<const Chain>>(kLogChains);
  };

  // Each returns what is wrong with the line, or "".
  std::string OnProcess(std::string_view line, EventSink* sink);
  std::string OnSource(std::string_view line, EventSink* sink) const;
  std::string OnNote(std::string_view line, EventSink* sink) const;
  std::string OnUnaudited(std::string_view line, EventSink* sink) const;
  std::string OnLimit(std::string_view line, EventSink* sink) const;
  std::string OnLoss(std::string_view line, EventSink* sink) const;
  std::string OnThread(std::string_view line) const;
  std::string OnObject(std::string_view line, EventSink* sink);
  std::string OnChain(std::string_view line);
  std::string OnEvent(EventKind kind, std::string_view line, EventSink* sink);
  std::string OnField(std::string_view name, std::string_view value, Event* event);

  std::map<std::uint32_t, ProcessState> processes;
  std::uint32_t number = 0;  // of the process that lines are of
  ProcessState* process = nullptr;
};

std::string LogReader::State::OnProcess(std::string_view line, EventSink* sink) {
  Process found;
  if (!Parse(Take(&line, ' '), &found.number) || found.number == 0) {
    return "the process has no number";
  }
  const auto known = processes.find(found.number);
  if (line.empty()) {
    if (known == processes.end()) {
      return "process " + std::to_string(found.number) + " has not begun";
    }
    number = found.number;
    process = &known->second;
    return "";
  }
  if (known != processes.end()) {
    return "process " + std::to_string(found.number) + " begins again";
  }
  const bool has_pids =
      Parse(Take(&line, ' '), &found.pid) && Parse(Take(&line, ' '), &found.parent);
  const std::string_view kind = Take(&line, ' ');
  const bool has_start = Parse(Take(&line, ' '), &found.start_ns);
  if (!has_pids || (kind != "-" && kind != "forked") || !has_start ||
      !Unescape(line, &found.program)) {
    return "not a process: NUMBER PID PARENT KIND START PROGRAM";
  }
  found.forked = kind == "forked";
  number = found.number;
  process = &processes[number];
  sink->OnProcess(found);
  return "";
}

std::string LogReader::State::OnSource(std::string_view line, EventSink* sink) const {
  std::string name;
  if (line.empty() || !Unescape(line, &name)) return "not a source: NAME";
  sink->OnSource(number, name);
  return "";
}

std::string LogReader::State::OnNote(std::string_view line, EventSink* sink) const {
  std::string text;
  if (!Unescape(line, &text)) return "not a note: TEXT";
  sink->OnNote(number, text);
  return "";
}

std::string LogReader::State::OnUnaudited(std::string_view line, EventSink* sink) const {
  std::string why;
  if (line.empty() || !Unescape(line, &why)) return "not a reason: unaudited WHY";
  sink->OnUnaudited(number, why);
  return "";
}

std::string LogReader::State::OnLimit(std::string_view line, EventSink* sink) const {
  std::string text;
  if (line.empty() || !Unescape(line, &text)) return "not a limit: TEXT";
  sink->OnLimit(number, text);
  return "";
}

std::string LogReader::State::OnThread(std::string_view line) const {
  std::uint32_t thread = 0;
  OsThread found;
  if (!Parse(Take(&line, ' '), &thread) || !Parse(Take(&line, ' '), &found.id) ||
      !Unescape(line, &found.name)) {
    return "not a thread: NUMBER ID NAME";
  }
  process->threads[thread] = std::make_shared<const OsThread>(std::move(found));
  return "";
}

std::string LogReader::State::OnLoss(std::string_view line, EventSink* sink) const {
  Loss loss;
  if (!Parse(Take(&line, ' '), &loss.events) || !Parse(line, &loss.records)) {
    return "not a loss: EVENTS RECORDS";
  }
  sink->OnLoss(number, loss);
  return "";
}

std::string LogReader::State::OnObject(std::string_view line, EventSink* sink) {
  std::uint32_t index = 0;
  const bool has_index = Parse(Take(&line, ' '), &index) && index != 0;
  Object object;
  std::string_view word = Take(&line, ' ');
  object.build_id = Take(&word, ':');
  object.soname = Take(&word, ':');
  const std::string_view package = Take(&word, ':');
  object.function = word;
  if (!has_index || object.build_id.empty() || !Unescape(line, &object.path) ||
      (!package.empty() && !Parse(package, &object.package)) ||
      object.package > object.path.size()) {
    return "not an object: NUMBER BUILD_ID[:SONAME[:PACKAGE[:FUNCTION]]] PATH";
  }
  if (object.build_id == "-") {
    object.build_id.clear();
  }
  process->objects.insert(index);
  sink->OnObject(number, index, object);
  return "";
}

std::string LogReader::State::OnChain(std::string_view line) {
  std::size_t index = 0;
  if (!Parse(Take(&line, ' '), &index) || index == 0 || index >= kLogChains) {
    return "the chain has no number from 1 to " + std::to_string(kLogChains - 1);
  }
  auto chain = std::make_shared<Chain>();
  while (!line.empty()) {
    std::string_view word = Take(&line, ' ');
    const std::string text(word);
    Frame frame{};
    const bool is_frame = Parse(Take(&word, '+'), &frame.object) &&
                          Parse(Take(&word, '@'), &frame.offset, 16) &&
                          Parse(word, &frame.address, 16);
    if (!is_frame) {
      return "not a frame: " + text;
    }
    if (frame.object != 0 && process->objects.count(frame.object) == 0) {
      return "object " + std::to_string(frame.object) + " is not known";
    }
    chain->push_back(frame);
  }
  process->chains[index] = std::move(chain);
  return "";
}

std::string LogReader::State::OnEvent(EventKind kind, std::string_view line, EventSink* sink) {
  static const std::shared_ptr<const Chain>* const kEmpty =
      new std::shared_ptr<const Chain>(std::make_shared<const Chain>());
  Event event;
  event.kind = kind;
  event.chain = *kEmpty;
  const bool has_place =
      Parse(Take(&line, ' '), &event.thread) && Parse(Take(&line, ' '), &event.time_ns);
  event.name = Take(&line, ' ');
  if (!has_place || event.name.empty()) {
    return "not an event: KIND THREAD TIME NAME";
  }
  if (event.name == "-") {
    event.name.clear();
  }
  while (!line.empty()) {
    std::string_view value = Take(&line, ' ');
    const std::string_view name = Take(&value, '=');
    if (std::string wrong = OnField(name, value, &event); !wrong.empty()) {
      return wrong;
    }
  }
  const auto thread = process->threads.find(event.thread);
  if (thread != process->threads.end()) {
    event.os_thread = thread->second;
    if (kind == EventKind::kThreadEnd) process->threads.erase(thread);
  }
  sink->OnEvent(number, event);
  return "";
}

std::string LogReader::State::OnField(std::string_view name, std::string_view value, Event* event) {
  int flag = 0;
  std::size_t chain = 0;
  bool is_good = false;
  if (name == "result") {
    is_good = Parse(value, &event->result);
  } else if (name == "before") {
    is_good = Parse(value, &event->before);
  } else if (name == "after") {
    is_good = Parse(value, &event->after);
  } else if (name == "context") {
    is_good = Parse(value, &event->context);
  } else if (name == "device") {
    is_good = Parse(value, &event->device);
  } else if (name == "primary") {
    is_good = Parse(value, &flag) && (flag == 0 || flag == 1);
    event->primary = flag == 1;
  } else if (name == "runtime") {
    is_good = Parse(value, &flag) && flag >= 0 && flag <= 2;
    if (is_good) event->runtime = static_cast<Runtime>(flag);
  } else if (name == "setting") {
    is_good = Parse(value, &event->setting);
  } else if (name == "value") {
    is_good = Parse(value, &event->value);
  } else if (name == "old") {
    is_good = Parse(value, &event->old_value);
  } else if (name == "chain") {
    is_good = Parse(value, &chain) && chain < kLogChains && process->chains[chain] != nullptr;
    event->chain = is_good ? process->chains[chain] : event->chain;
  } else {
    return "an event has no " + std::string(name);
  }
  return is_good ? "" : "wrong " + std::string(name) + ": " + std::string(value);
}

LogReader::LogReader(EventSink* sink) : sink_(sink), state_(std::make_unique<State>()) {}
LogReader::~LogReader() = default;

void LogReader::Read(std::string_view part) {
  while (error_.empty() && !part.empty()) {
    const std::size_t end = part.find('\n');
    rest_ += part.substr(0, end);
    part.remove_prefix(end == std::string_view::npos ? part.size() : end + 1);
    std::string wrong;
    if (rest_.size() > kLongestLine) {
      wrong = "too long";
    } else if (end == std::string_view::npos) {
      return;
    } else {
      wrong = ReadLine(rest_);
    }
    ++line_;
    rest_.clear();
    if (!wrong.empty()) {
      error_ = "line " + std::to_string(line_) + ": " + wrong;
    }
  }
}

void LogReader::Finish() {
  if (!error_.empty()) {
    return;
  }
  if (line_ == 0 && rest_.empty()) {
    error_ = "line 1: there is none: not a log of cuguest-audit";
  } else if (!has_ended_ || !rest_.empty()) {
    error_ = "line " + std::to_string(line_ + 1) + ": cut off";
  }
}

std::string LogReader::ReadLine(std::string_view line) {
  if (line_ == 0) {
    const std::string_view magic = kMagic;
    if (line.substr(0, magic.size()) != magic) {
      return "not a log of cuguest-audit";
    }
    const std::string_view version = line.substr(magic.size());
    // The first version had no objects.
    return version == std::to_string(kLogVersion) || version == "1"
               ? ""
               : "the log's version is " + std::string(version) + ", and this reads " +
                     std::to_string(kLogVersion);
  }
  if (has_ended_) {
    return "there is more behind the end";
  }
  const std::string_view kind = Take(&line, ' ');
  if (kind == kEnd) {
    has_ended_ = true;
    return "";
  }
  if (kind == "process") {
    return state_->OnProcess(line, sink_);
  }
  if (state_->process == nullptr) {
    return "no process has begun";
  }
  if (kind == "source") {
    return state_->OnSource(line, sink_);
  }
  if (kind == "note") {
    return state_->OnNote(line, sink_);
  }
  if (kind == "unaudited") {
    return state_->OnUnaudited(line, sink_);
  }
  if (kind == "limit") {
    return state_->OnLimit(line, sink_);
  }
  if (kind == "thread") {
    return state_->OnThread(line);
  }
  if (kind == "lost") {
    return state_->OnLoss(line, sink_);
  }
  if (kind == "object") {
    return state_->OnObject(line, sink_);
  }
  if (kind == "chain") {
    return state_->OnChain(line);
  }
  for (std::size_t i = 0; i < std::size(kEventKinds); ++i) {
    if (kind == kEventKinds[i]) {
      return state_->OnEvent(static_cast<EventKind>(i), line, sink_);
    }
  }
  return "no such record: " + std::string(kind);
}

}  // namespace cuguest::audit
