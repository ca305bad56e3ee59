// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/trace.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "audit/command/json.h"

BOOST_AUTO_TEST_SUITE(audit_trace)

using namespace cuguest::audit;

namespace {

ContextNote OnDeviceZero(ContextId id) { return {id, 0, false, {}}; }

// What a trace is told of.
struct Stacks : StackChanges {
  explicit Stacks(TraceWriter* trace) { Tell(trace); }
};

struct TraceFile {
  TraceFile() { close(mkstemp(path)); }
  ~TraceFile() { unlink(path); }

  [[nodiscard]] std::string Read() const {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  char path[32] = "/tmp/cuguest-trace-XXXXXX";
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_stack_opens_and_closes_slices) {
  const TraceFile file;
  TraceWriter trace;
  BOOST_TEST(trace.Open(file.path) == "");
  Stacks stacks(&trace);
  stacks.Set({1, 7, 1}, 1000, {OnDeviceZero(1)});
  stacks.Set({1, 7, 1}, 2500, {OnDeviceZero(1), OnDeviceZero(2)});
  stacks.Set({1, 7, 1}, 2600, {OnDeviceZero(1), OnDeviceZero(2)});
  stacks.Set({1, 7, 1}, 3000, {OnDeviceZero(1), {3, 1, true, {}}});
  stacks.Set({1, 7, 2}, 3000, {{4, -1, false, {}}});
  stacks.EndProcess(1, 5000);
  BOOST_TEST(trace.Close() == "");
  BOOST_TEST(file.Read() ==
             R"json([
{"ph":"M","pid":7,"tid":1,"name":"thread_name","args":{"name":"thread 1"}},
{"ph":"B","pid":7,"tid":1,"name":"context 1 (device 0)","ts":0.000},
{"ph":"B","pid":7,"tid":1,"name":"context 2 (device 0)","ts":1.500},
{"ph":"E","pid":7,"tid":1,"name":"context 2 (device 0)","ts":2.000},
{"ph":"B","pid":7,"tid":1,"name":"context 3 (primary of device 1)","ts":2.000},
{"ph":"M","pid":7,"tid":2,"name":"thread_name","args":{"name":"thread 2"}},
{"ph":"B","pid":7,"tid":2,"name":"context 4","ts":2.000},
{"ph":"E","pid":7,"tid":1,"name":"context 3 (primary of device 1)","ts":4.000},
{"ph":"E","pid":7,"tid":1,"name":"context 1 (device 0)","ts":4.000},
{"ph":"E","pid":7,"tid":2,"name":"context 4","ts":4.000}
]
)json");
}

BOOST_AUTO_TEST_CASE(threads_of_processes_have_own_numbers) {
  const TraceFile file;
  TraceWriter trace;
  BOOST_TEST(trace.Open(file.path) == "");
  trace.AddInstant({1, 7, 1}, 0, "x", {{"call", "cuCtxSetCurrent"}, {"times", "2"}});
  trace.AddInstant({2, 8, 1}, 0, "y", {});
  trace.AddCounter(8, 1000, "contexts", 3);
  BOOST_TEST(trace.Close() == "");
  const std::string text = file.Read();
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  BOOST_TEST(has(
      R"("pid":7,"tid":1,"name":"x","ts":0.000,"s":"t","args":{"call":"cuCtxSetCurrent","times":"2"}})"));
  BOOST_TEST(has(R"("pid":8,"tid":2,"name":"y","ts":0.000,"s":"t","args":{}})"));
  BOOST_TEST(has(R"("ph":"C","pid":8,"tid":0,"name":"contexts","ts":1.000,"args":{"value":3}})"));
}

BOOST_AUTO_TEST_CASE(an_ended_thread_closes_its_slices) {
  const TraceFile file;
  TraceWriter trace;
  BOOST_TEST(trace.Open(file.path) == "");
  Stacks stacks(&trace);
  stacks.Set({1, 7, 1}, 0, {OnDeviceZero(1)});
  stacks.EndThread({1, 7, 1}, 1000);
  stacks.EndThread({1, 7, 9}, 1000);  // of which there was no event
  stacks.Set({1, 7, 2}, 2000, {OnDeviceZero(2)});
  stacks.EndProcess(1, 3000);
  BOOST_TEST(trace.Close() == "");
  BOOST_TEST(file.Read() == R"json([
{"ph":"M","pid":7,"tid":1,"name":"thread_name","args":{"name":"thread 1"}},
{"ph":"B","pid":7,"tid":1,"name":"context 1 (device 0)","ts":0.000},
{"ph":"E","pid":7,"tid":1,"name":"context 1 (device 0)","ts":1.000},
{"ph":"M","pid":7,"tid":2,"name":"thread_name","args":{"name":"thread 2"}},
{"ph":"B","pid":7,"tid":2,"name":"context 2 (device 0)","ts":2.000},
{"ph":"E","pid":7,"tid":2,"name":"context 2 (device 0)","ts":3.000}
]
)json");
}

BOOST_AUTO_TEST_CASE(a_slice_has_what_becomes_known) {
  const TraceFile file;
  TraceWriter trace;
  BOOST_TEST(trace.Open(file.path) == "");
  Stacks stacks(&trace);
  stacks.Set({1, 7, 1}, 0, {{1, -1, false, {}}});
  stacks.Set({1, 7, 1}, 1000, {OnDeviceZero(1)});
  BOOST_TEST(trace.Close() == "");
  BOOST_TEST(file.Read().find(R"json("B","pid":7,"tid":1,"name":"context 1 (device 0)")json") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_empty_trace_is_an_array) {
  const TraceFile file;
  TraceWriter trace;
  BOOST_TEST(trace.Open(file.path) == "");
  BOOST_TEST(trace.Close() == "");
  BOOST_TEST(file.Read() == "[]\n");
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_reported_once) {
  TraceWriter trace;
  BOOST_TEST(trace.Open("/dev/full") == "");
  Stacks stacks(&trace);
  for (std::uint64_t i = 0; i < 10000; ++i) stacks.Set({1, 7, 1}, i, {OnDeviceZero(i)});
  BOOST_TEST(!trace.is_open());
  stacks.Set({1, 7, 2}, 10000, {OnDeviceZero(1)});
  BOOST_TEST(trace.Close() == "/dev/full: No space left on device");
}

BOOST_AUTO_TEST_CASE(a_trace_needs_a_file) {
  TraceWriter trace;
  BOOST_TEST(trace.Open("/there/is/no/folder") == "/there/is/no/folder: No such file or directory");
  Stacks(&trace).Set({1, 7, 1}, 0, {OnDeviceZero(1)});
  BOOST_TEST(trace.Close() == "");
}

BOOST_AUTO_TEST_CASE(a_process_that_called_exec_is_another_one) {
  const TraceFile file;
  TraceWriter trace;
  BOOST_TEST(trace.Open(file.path) == "");
  Stacks stacks(&trace);
  stacks.Set({1, 7, 1}, 0, {OnDeviceZero(1)});
  stacks.Set({2, 7, 1}, 2000, {OnDeviceZero(1)});
  stacks.EndProcess(1, 1000);
  stacks.EndProcess(2, 3000);
  BOOST_TEST(trace.Close() == "");
  const std::string text = file.Read();
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  BOOST_TEST(has(R"json("E","pid":7,"tid":1,"name":"context 1 (device 0)","ts":1.000)json"), text);
  BOOST_TEST(has(R"json("B","pid":7,"tid":2,"name":"context 1 (device 0)","ts":2.000)json"), text);
}

BOOST_AUTO_TEST_CASE(strings_become_utf8) {
  BOOST_TEST(JsonString("a\"b\\c\n") == "\"a\\\"b\\\\c\\u000a\"");
  BOOST_TEST(JsonString("\xc3\xa9") == "\"\xc3\xa9\"");
  for (const char* bad : {"\xff", "\xc0", "\xe9", "\x80"}) {
    BOOST_TEST(JsonString(bad) == "\"\\ufffd\"");
  }
  BOOST_TEST(JsonString("\xe2\x82") == "\"\\ufffd\\ufffd\"");
  BOOST_TEST(JsonString("\xed\xa0\x80") == "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
  BOOST_TEST(JsonString("\xf4\x90\x80\x80") == "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

BOOST_AUTO_TEST_SUITE_END()
