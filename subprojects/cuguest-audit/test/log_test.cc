// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/log.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/scenario.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(audit_log)

namespace {

namespace audit = cuguest::audit;
using cuguest_test::LogOf;
using cuguest_test::Replayed;

// What a reader passes on, as text.
class Recorder final : public audit::EventSink {
 public:
  void OnProcess(const audit::Process& process) override {
    text += "process " + std::to_string(process.number) + " " + std::to_string(process.pid) + " " +
            std::to_string(process.parent) + (process.forked ? " forked " : " ") +
            std::to_string(process.start_ns) + " " + process.program + "\n";
  }
  void OnSource(std::uint32_t process, const std::string& name) override {
    text += std::to_string(process) + " source " + name + "\n";
  }
  void OnNote(std::uint32_t process, const std::string& note) override {
    text += std::to_string(process) + " note " + note + "\n";
  }
  void OnUnaudited(std::uint32_t process, const std::string& why) override {
    text += std::to_string(process) + " unaudited " + why + "\n";
  }
  void OnLimit(std::uint32_t process, const std::string& limit) override {
    text += std::to_string(process) + " limit " + limit + "\n";
  }
  void OnLoss(std::uint32_t process, const audit::Loss& loss) override {
    text += std::to_string(process) + " lost " + std::to_string(loss.events) + " " +
            std::to_string(loss.records) + "\n";
  }
  void OnObject(std::uint32_t process, std::uint32_t index, const audit::Object& object) override {
    text += std::to_string(process) + " object " + std::to_string(index) + " " + object.build_id +
            " " + object.soname + " " + std::to_string(object.package) + " " + object.function +
            " " + object.path + "\n";
  }
  void OnEvent(std::uint32_t process, const audit::Event& event) override {
    text += std::to_string(process) + " event " + std::to_string(static_cast<int>(event.kind)) +
            " " + std::to_string(event.thread) + " " + std::to_string(event.time_ns) + " " +
            event.name + " " + std::to_string(event.result) + " " + std::to_string(event.before) +
            " " + std::to_string(event.after) + " " + std::to_string(event.context) + " " +
            std::to_string(event.device) + " " + std::to_string(event.primary) + " " +
            std::to_string(event.setting) + " " + std::to_string(event.value) + " " +
            std::to_string(event.old_value) + " ";
    if (event.os_thread != nullptr) {
      text += std::to_string(event.os_thread->id) + " " + event.os_thread->name;
    }
    text += " [";
    for (const audit::Frame& frame : *event.chain) {
      text += " " + std::to_string(frame.object) + " " + std::to_string(frame.offset) + " " +
              std::to_string(frame.address);
    }
    text += " ]\n";
    ++events;
  }

  std::string text;
  int events = 0;
};

std::string ErrorIn(const std::string& log, int* events = nullptr) {
  Recorder recorder;
  audit::LogReader reader(&recorder);
  reader.Read(log);
  reader.Finish();
  if (events != nullptr) {
    *events = recorder.events;
  }
  return reader.error();
}

audit::Event RandomEvent(std::mt19937_64* random) {
  const auto number = [&] { return (*random)() >> ((*random)() % 64); };
  audit::Event event;
  event.kind = static_cast<audit::EventKind>(number() % 9);
  event.time_ns = number();
  event.thread = static_cast<std::uint32_t>(number());
  event.name = number() % 4 == 0 ? "" : "cuCall" + std::to_string(number() % 100);
  event.result = static_cast<int>(number() % 2000) - 1000;
  event.before = number();
  event.after = number();
  event.context = number();
  event.device = static_cast<int>(number() % 4) - 2;
  event.primary = number() % 2 == 1;
  event.setting = static_cast<int>(number() % 4) - 2;
  event.value = number();
  event.old_value = number();
  auto chain = std::make_shared<audit::Chain>();
  for (std::uint64_t i = number() % 5; i > 0; --i) {
    chain->push_back({static_cast<std::uint32_t>(number() % 3), number() % 50, number()});
  }
  event.chain = std::move(chain);
  return event;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  std::mt19937_64 random(20);
  Recorder told;
  std::string log;
  audit::LogWriter writer(&log);
  for (audit::EventSink* sink : std::initializer_list<audit::EventSink*>{&told, &writer}) {
    sink->OnProcess({1, 100, 99, false, 81'264'003'712, "/bin/with space\nand \\ line"});
    sink->OnNote(1, "cupti: taken by\n\\another tool");
    sink->OnSource(1, "the sanitizer");
    sink->OnObject(1, 1, {"/lib/a b\n\\n.so", "0123ab"});
    sink->OnObject(1, 2, {"/lib/c.so", ""});
    sink->OnObject(1, 3, {"/lib/d.so.1.2", "45cd", "", "d.so.1"});
    sink->OnObject(1, 4, {"/lib/e.so", "", "", "e.so"});
    sink->OnObject(1, 5, {"/home/me/enc/a b.py", "", "", "", 12, "Encoder.<locals>:x"});
    sink->OnObject(1, 6, {"<string>", "", "", "", 0, "<module>"});
    sink->OnObject(1, 7, {"/home/me/enc/c.so", "67ef", "", "c.so", 12});
    sink->OnLimit(1, "more than\n\\ fit");
    sink->OnProcess({2, 101, 100, true, 0, "/bin/child"});
    sink->OnUnaudited(2, "it\nhas \\ none");
    sink->OnLoss(1, {3, ~std::uint64_t{0}});
    sink->OnObject(2, 1, {"/lib/other.so", ""});
    sink->OnObject(2, 2, {"", ""});
  }
  // More chains than are known by number at one time.
  for (int i = 0; i < 20'000; ++i) {
    const audit::Event event = RandomEvent(&random);
    const std::uint32_t process = 1 + static_cast<std::uint32_t>(random() % 2);
    told.OnEvent(process, event);
    writer.OnEvent(process, event);
  }
  writer.End();
  // In pieces of any size.
  Recorder read;
  audit::LogReader reader(&read);
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t size = 1 + random() % 5000;
    reader.Read(std::string_view(log).substr(at, size));
    at += size;
  }
  reader.Finish();
  BOOST_TEST(reader.error() == "");
  BOOST_TEST((read.text == told.text));
  BOOST_TEST(read.events == 20'000);
}

BOOST_AUTO_TEST_CASE(threads_are_named_until_they_end) {
  Recorder told;
  std::string log;
  audit::LogWriter writer(&log);
  audit::Event event;
  event.chain = std::make_shared<audit::Chain>();
  const auto first = std::make_shared<audit::OsThread>(audit::OsThread{4711, "a \nworker"});
  const auto second = std::make_shared<audit::OsThread>(audit::OsThread{4712, ""});
  for (audit::EventSink* sink : std::initializer_list<audit::EventSink*>{&told, &writer}) {
    for (const std::uint32_t process : {1, 2}) {
      sink->OnProcess({process, 100, 99, false, 0, "/bin/host"});
    }
    for (const std::uint32_t process : {1, 1, 2, 1}) {
      event.thread = 1;
      event.os_thread = first;
      event.kind = audit::EventKind::kCheck;
      sink->OnEvent(process, event);
      event.kind = audit::EventKind::kThreadEnd;
      sink->OnEvent(process, event);
      event.os_thread = nullptr;  // another one of the same number, which is not known
      event.kind = audit::EventKind::kCheck;
      sink->OnEvent(process, event);
      event.os_thread = first;
      sink->OnEvent(process, event);
      event.os_thread = second;
      sink->OnEvent(process, event);
    }
  }
  writer.End();
  Recorder read;
  audit::LogReader reader(&read);
  reader.Read(log);
  reader.Finish();
  BOOST_TEST(reader.error() == "");
  BOOST_TEST(read.text == told.text);
}

BOOST_AUTO_TEST_CASE(a_chain_is_written_once) {
  std::string log;
  audit::LogWriter writer(&log);
  writer.OnProcess({1, 100, 99, false, 0, "/bin/host"});
  writer.OnObject(1, 1, {"/bin/host", ""});
  audit::Event event;
  for (int i = 0; i < 3; ++i) {
    event.chain = std::make_shared<audit::Chain>(audit::Chain{{1, 2, 3}});
    writer.OnEvent(1, event);
  }
  BOOST_TEST(log.find("chain ") == log.rfind("\nchain ") + 1);
}

BOOST_AUTO_TEST_CASE(findings_do_not_depend_on_whether_the_log_was_written_again) {
  const std::string log = LogOf(R"(
context cuCtxCreate context=1 device=0 | host
cuCtxCreate 0>1 context=1 | host
cuCtxPushCurrent 1>2 context=2 | third:3 guest host
t2 cudaSetDevice 0>5 | cublas host
t2 cuCtxPushCurrent 5>1 context=1 | host
cuCtxSetLimit 2>2 setting=1 value=9 old=4 context=1 | third host
check 2>2 | host
)");
  std::string again;
  audit::LogWriter writer(&again);
  audit::LogReader reader(&writer);
  reader.Read(log);
  const Replayed first(log);
  const Replayed second(again);
  BOOST_TEST(first.Summary().size() == 3u);
  BOOST_TEST(first.Text() == second.Text());
}

BOOST_AUTO_TEST_CASE(a_log_that_is_cut_off_gives_what_was_before) {
  const std::string log = LogOf(R"(
cuCtxCreate 0>1 context=1 | host
cuCtxPushCurrent 1>2 context=2 | third host
check 2>2 | host
check 2>2 | host
)");
  const Replayed whole(log);
  BOOST_TEST(whole.error() == "");
  // In the middle of a line.
  const Replayed cut(log.substr(0, log.size() - 7));
  BOOST_TEST(cut.error() == "line 33: cut off");
  BOOST_TEST(cut.Text() == whole.Text());
  BOOST_TEST(cut.Summary().size() == 1u);
  // Wherever it ends, nothing but that is wrong.
  for (std::size_t size = 0; size < log.size(); ++size) {
    const std::string error = ErrorIn(log.substr(0, size));
    const bool is_told = size == 0 ? error == "line 1: there is none: not a log of cuguest-audit"
                                   : error.find(": cut off") != std::string::npos;
    BOOST_REQUIRE_MESSAGE(is_told, size << ": " << error);
  }
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_told_with_its_line) {
  const std::string begin =
      "cuguest-audit-log 1\nprocess 1 2 3 - 4 /bin/host\nobject 1 - /bin/host\n";
  BOOST_TEST(ErrorIn(begin + "end\n") == "");
  BOOST_TEST(ErrorIn(begin) == "line 4: cut off");
  BOOST_TEST(ErrorIn(begin + "end\nend\n") == "line 5: there is more behind the end");
  BOOST_TEST(ErrorIn("") == "line 1: there is none: not a log of cuguest-audit");
  BOOST_TEST(ErrorIn("ELF\n") == "line 1: not a log of cuguest-audit");
  BOOST_TEST(ErrorIn("cuguest-audit-log 3\n") ==
             "line 1: the log's version is 3, and this reads 2");
  BOOST_TEST(ErrorIn("cuguest-audit-log 2\nend\n") == "");
  BOOST_TEST(ErrorIn("cuguest-audit-log 1\nobject 1 - /bin/host\n") ==
             "line 2: no process has begun");
  for (const auto& [line, error] : std::initializer_list<std::pair<const char*, const char*>>{
           {"jump 1 2 -", "no such record: jump"},
           {"", "no such record: "},
           {"process", "the process has no number"},
           {"unaudited", "not a reason: unaudited WHY"},
           {"process 1 2 3 - 4 /bin/host", "process 1 begins again"},
           {"process 2", "process 2 has not begun"},
           {"process 2 x 3 - 4 /bin/host", "not a process: NUMBER PID PARENT KIND START PROGRAM"},
           {"process 2 2 3 copied 4 /bin/host",
            "not a process: NUMBER PID PARENT KIND START PROGRAM"},
           {"process 2 2 3 - /bin/host", "not a process: NUMBER PID PARENT KIND START PROGRAM"},
           {"source", "not a source: NAME"},
           {"note \\x", "not a note: TEXT"},
           {"limit", "not a limit: TEXT"},
           {"thread 1", "not a thread: NUMBER ID NAME"},
           {"thread x 1 a", "not a thread: NUMBER ID NAME"},
           {"thread 1 2 \\x", "not a thread: NUMBER ID NAME"},
           {"object 2 -::5:f /lib",
            "not an object: NUMBER BUILD_ID[:SONAME[:PACKAGE[:FUNCTION]]] PATH"},
           {"object 2 -::x:f /lib",
            "not an object: NUMBER BUILD_ID[:SONAME[:PACKAGE[:FUNCTION]]] PATH"},
           {"lost 1", "not a loss: EVENTS RECORDS"},
           {"lost 1 2 3", "not a loss: EVENTS RECORDS"},
           {"object 0 - /lib", "not an object: NUMBER BUILD_ID[:SONAME[:PACKAGE[:FUNCTION]]] PATH"},
           {"object 2", "not an object: NUMBER BUILD_ID[:SONAME[:PACKAGE[:FUNCTION]]] PATH"},
           {"object 2 - /lib\\x",
            "not an object: NUMBER BUILD_ID[:SONAME[:PACKAGE[:FUNCTION]]] PATH"},
           {"chain 4096 1+1@1", "the chain has no number from 1 to 4095"},
           {"chain 1 1+1", "not a frame: 1+1"},
           {"chain 1 1+1@g", "not a frame: 1+1@g"},
           {"chain 1 7+1@1", "object 7 is not known"},
           {"call x 1 -", "not an event: KIND THREAD TIME NAME"},
           {"call 1 1", "not an event: KIND THREAD TIME NAME"},
           {"call 1 1 - before=x", "wrong before: x"},
           {"call 1 1 - before=18446744073709551616", "wrong before: 18446744073709551616"},
           {"call 1 1 - primary=2", "wrong primary: 2"},
           {"call 1 1 - chain=9", "wrong chain: 9"},
           {"call 1 1 - colour=9", "an event has no colour"},
       }) {
    int events = 0;
    BOOST_TEST(ErrorIn(begin + "check 1 1 -\n" + line + "\ncheck 1 1 -\n", &events) ==
               "line 5: " + std::string(error));
    BOOST_TEST(events == 1);
  }
  BOOST_TEST(ErrorIn(begin + std::string(std::size_t{5} << 20, 'x')) == "line 4: too long");
}

// Whatever is changed, the reader ends and what it passes on can be analysed.
BOOST_AUTO_TEST_CASE(damaged_logs) {
  const std::string log = LogOf(R"(
context cuCtxCreate context=1 device=0 | host
cuCtxCreate 0>1 context=1 | host
cuCtxPushCurrent 1>2 context=2 | third guest host
cudaSetDevice 2>5 device=0 | cublas host
cuCtxDestroy 5>5 context=1 | third host
t2 cuCtxPopCurrent 1>0 | host
check 2>2 | host
thread_end
process_end
)");
  std::mt19937 random(7);
  int good = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = log;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
      damaged[random() % damaged.size()] = "0123456789 =@+\n-ax"[random() % 18];
    }
    if (damaged.rfind("cuguest-audit-log 1\nprocess 1 100 99 - 0 /bin/host\n", 0) == 0) {
      const Replayed replayed(damaged);
      replayed.Text();
      good += replayed.error().empty() ? 1 : 0;
    }
  }
  BOOST_TEST(good > 100);
}

BOOST_AUTO_TEST_SUITE_END()
