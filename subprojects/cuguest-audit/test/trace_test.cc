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
  trace.SetStack({7, 7}, 1, 1000, {"a"});
  trace.SetStack({7, 7}, 1, 2500, {"a", "b"});
  trace.SetStack({7, 7}, 1, 3000, {"a", "c"});
  trace.SetStack({7, 7}, 2, 3000, {"d"});
  trace.EndProcess({7, 7}, 5000);
  BOOST_TEST(trace.Close() == "");
  BOOST_TEST(file.Read() ==
             R"([
{"ph":"M","pid":7,"tid":1,"name":"thread_name","args":{"name":"thread 1"}},
{"ph":"B","pid":7,"tid":1,"name":"a","ts":0.000},
{"ph":"B","pid":7,"tid":1,"name":"b","ts":1.500},
{"ph":"E","pid":7,"tid":1,"name":"b","ts":2.000},
{"ph":"B","pid":7,"tid":1,"name":"c","ts":2.000},
{"ph":"M","pid":7,"tid":2,"name":"thread_name","args":{"name":"thread 2"}},
{"ph":"B","pid":7,"tid":2,"name":"d","ts":2.000},
{"ph":"E","pid":7,"tid":1,"name":"c","ts":4.000},
{"ph":"E","pid":7,"tid":1,"name":"a","ts":4.000},
{"ph":"E","pid":7,"tid":2,"name":"d","ts":4.000}
]
)");
}

BOOST_AUTO_TEST_CASE(threads_of_processes_have_own_numbers) {
  const TraceFile file;
  TraceWriter trace;
  BOOST_TEST(trace.Open(file.path) == "");
  trace.AddInstant({7, 7}, 1, 0, "x", {{"call", "cuCtxSetCurrent"}, {"times", "2"}});
  trace.AddInstant({8, 8}, 1, 0, "y", {});
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
  trace.SetStack({7, 7}, 1, 0, {"a"});
  trace.EndThread({7, 7}, 1, 1000);
  trace.EndThread({7, 7}, 9, 1000);  // of which there was no event
  trace.SetStack({7, 7}, 2, 2000, {"b"});
  trace.EndProcess({7, 7}, 3000);
  BOOST_TEST(trace.Close() == "");
  BOOST_TEST(file.Read() == R"([
{"ph":"M","pid":7,"tid":1,"name":"thread_name","args":{"name":"thread 1"}},
{"ph":"B","pid":7,"tid":1,"name":"a","ts":0.000},
{"ph":"E","pid":7,"tid":1,"name":"a","ts":1.000},
{"ph":"M","pid":7,"tid":2,"name":"thread_name","args":{"name":"thread 2"}},
{"ph":"B","pid":7,"tid":2,"name":"b","ts":2.000},
{"ph":"E","pid":7,"tid":2,"name":"b","ts":3.000}
]
)");
}

BOOST_AUTO_TEST_CASE(a_process_that_calls_exec_is_two) {
  const TraceFile file;
  TraceWriter trace;
  BOOST_TEST(trace.Open(file.path) == "");
  trace.SetStack({7, 1}, 1, 0, {"a"});
  trace.SetStack({7, 2}, 1, 5000, {"b"});
  trace.EndProcess({7, 1}, 1000);
  trace.EndProcess({7, 2}, 6000);
  BOOST_TEST(trace.Close() == "");
  BOOST_TEST(file.Read() == R"([
{"ph":"M","pid":7,"tid":1,"name":"thread_name","args":{"name":"thread 1"}},
{"ph":"B","pid":7,"tid":1,"name":"a","ts":0.000},
{"ph":"M","pid":7,"tid":2,"name":"thread_name","args":{"name":"thread 1"}},
{"ph":"B","pid":7,"tid":2,"name":"b","ts":5.000},
{"ph":"E","pid":7,"tid":1,"name":"a","ts":1.000},
{"ph":"E","pid":7,"tid":2,"name":"b","ts":6.000}
]
)");
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
  for (std::uint64_t i = 0; i < 10000; ++i) trace.SetStack({7, 7}, 1, i, {std::to_string(i)});
  BOOST_TEST(!trace.is_open());
  trace.SetStack({7, 7}, 2, 10000, {"a"});
  BOOST_TEST(trace.Close() == "/dev/full: No space left on device");
}

BOOST_AUTO_TEST_CASE(a_trace_needs_a_file) {
  TraceWriter trace;
  BOOST_TEST(trace.Open("/there/is/no/folder") == "/there/is/no/folder: No such file or directory");
  trace.SetStack({7, 7}, 1, 0, {"a"});
  BOOST_TEST(trace.Close() == "");
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
