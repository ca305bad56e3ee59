// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library that is injected, in programs on the simulated driver and, through CUPTI, on a real
// one: what reaches the reader of their channels.

#include "audit/channel.h"
#include "audit/channel_reader.h"
#include "audit/channel_server.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/support/test.h"

using namespace cuguest::audit;

namespace {

struct Seen {
  std::string what;  // "call cuCtxPushCurrent"
  ContextId before;
  ContextId after;
  int result;

  bool operator==(const Seen& other) const {
    return what == other.what && before == other.before && after == other.after &&
           result == other.result;
  }
};

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << seen.what << " " << seen.before << "->" << seen.after << " = " << seen.result;
}

std::string Describe(const Event& event) {
  static const char* const kKinds[] = {"call",     "entered", "check",       "context",
                                       "used",     "thread",  "process end", "initialized",
                                       "unloaded", "made",    "stale"};
  const std::string kind = kKinds[static_cast<int>(event.kind)];
  return event.name.empty() ? kind : kind + " " + event.name;
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string Required(const char* variable) {
  const char* value = std::getenv(variable);
  BOOST_REQUIRE_MESSAGE(value != nullptr, variable << " is not set");
  return value;
}

// A run of the program, and everything that was read of it.
struct Audit {
  explicit Audit(const std::string& scenario,
                 const std::map<std::string, std::string>& environment = {}) {
    BOOST_REQUIRE(server.error() == "");
    const pid_t child = Start(scenario, environment);
    reader = std::make_unique<ChannelReader>();
    bool is_over = false;
    while (!is_over || !reader->AllEnded()) {
      if (!is_over) is_over = waitpid(child, &status, WNOHANG) == child;
      if (Read() == 0) usleep(1000);
    }
    pid = child;
  }

  const ChannelProcess& process() const {
    BOOST_REQUIRE(!reader->processes().empty());
    return *reader->processes().front();
  }

  // Of the process itself.
  std::vector<Seen> seen() const {
    std::vector<Seen> result;
    for (const Event& event : events.at(pid)) {
      if (event.kind == EventKind::kInitialized || event.kind == EventKind::kUnloaded ||
          event.kind == EventKind::kMade) {
        continue;
      }
      result.push_back({Describe(event), event.before, event.after, event.result});
    }
    return result;
  }

  const Event& Find(const std::string& what, size_t number = 0) const {
    for (const Event& event : events.at(pid)) {
      if (Describe(event) == what && number-- == 0) return event;
    }
    BOOST_FAIL("no event: " << what);
    std::abort();
  }

  // File names of the objects of its frames, each once in a row.
  std::vector<std::string> Objects(const Event& event) const {
    std::vector<std::string> names;
    for (const Frame& frame : *event.chain) {
      const std::string name = FileName(process().objects.at(frame.object).path);
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
  }

  ChannelServer server{kChannelSlots};
  int status = 0;
  pid_t pid = 0;
  std::unique_ptr<ChannelReader> reader;
  std::map<int, std::vector<Event>> events;  // by process id

 private:
  pid_t Start(const std::string& scenario, const std::map<std::string, std::string>& environment) {
    const std::string program = Required("CUGUEST_TEST_AUDIT_PROGRAM");
    const std::string guest = Required("CUGUEST_TEST_AUDIT_GUEST");
    const std::string other = Required("CUGUEST_TEST_AUDIT_OTHER_GUEST");
    const std::string library = Required("CUGUEST_TEST_AUDIT_LIBRARY");
    const pid_t child = fork();
    if (child != 0) return child;
    setenv("CUDA_INJECTION64_PATH", library.c_str(), 1);
    setenv(kChannelVariable, server.address().c_str(), 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execl(program.c_str(), program.c_str(), scenario.c_str(), guest.c_str(), other.c_str(),
          nullptr);
    _exit(127);
  }

  size_t Read() {
    server.Serve(reader.get());
    return reader->Poll([&](const ChannelProcess& process, const Event& event) {
      events[process.pid].push_back(event);
    });
  }
};

size_t CountOf(const std::vector<Event>& events, const std::string& what) {
  return static_cast<size_t>(std::count_if(
      events.begin(), events.end(), [&](const Event& event) { return Describe(event) == what; }));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(collector)

BOOST_AUTO_TEST_CASE(leaked_push_and_check_after_return) {
  const Audit audit("leak_and_check");
  BOOST_TEST(audit.status == 0);
  const std::vector<Seen> expected = {{"context cuCtxCreate", 0, 0, 0},
                                      {"call cuCtxCreate", 0, 1, 0},
                                      {"call cuCtxPushCurrent", 1, 1, 0},
                                      {"check cuCtxSynchronize", 1, 1, 0},
                                      {"call cuCtxPopCurrent", 1, 1, 0},
                                      {"process end", 0, 0, 0},
                                      {"check", 1, 1, 0}};
  BOOST_TEST(audit.seen() == expected, boost::test_tools::per_element());
  BOOST_TEST(audit.process().source == (cudasim::Sim::IsActive() ? "cudasim" : "cupti"));
  for (const std::string& note : audit.process().notes) BOOST_TEST_MESSAGE(note);
  BOOST_TEST(audit.process().lost == 0u);
  BOOST_TEST(audit.process().broken == 0u);
  BOOST_TEST(audit.process().pid == audit.pid);
  BOOST_TEST(audit.process().parent == getpid());
  BOOST_TEST(FileName(audit.process().program) == FileName(Required("CUGUEST_TEST_AUDIT_PROGRAM")));
}

BOOST_AUTO_TEST_CASE(last_call_is_checked_at_exit) {
  const Audit audit("leaks_in_the_end");
  BOOST_TEST(audit.status == 0);
  const std::vector<Seen> expected = {{"context cuCtxCreate", 0, 0, 0},
                                      {"call cuCtxCreate", 0, 1, 0},
                                      {"call cuCtxPushCurrent", 1, 1, 0},
                                      {"process end", 0, 0, 0},
                                      {"check", 1, 1, 0}};
  BOOST_TEST(audit.seen() == expected, boost::test_tools::per_element());
  const std::vector<std::string> objects = audit.Objects(audit.Find("check"));
  BOOST_TEST(std::count(objects.begin(), objects.end(), "libaudit_guest.so") == 0);
  BOOST_TEST(objects.back() == FileName(audit.process().program));  // its _start
}

BOOST_AUTO_TEST_CASE(process_ends_before_the_handlers_of_its_exit) {
  const Audit audit("calls_in_exit");
  BOOST_TEST(audit.status == 0);
  const std::vector<Seen> expected = {
      {"context cuCtxCreate", 0, 0, 0},  {"call cuCtxCreate", 0, 1, 0},
      {"process end", 0, 0, 0},          {"call cuCtxPushCurrent", 1, 1, 0},
      {"call cuCtxPopCurrent", 1, 1, 0}, {"check", 1, 1, 0}};
  BOOST_TEST(audit.seen() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(library_that_exits_has_not_returned) {
  const Audit audit("exits_in_the_guest");
  BOOST_TEST(audit.status == 0);
  const std::vector<Seen> expected = {{"context cuCtxCreate", 0, 0, 0},
                                      {"call cuCtxCreate", 0, 1, 0},
                                      {"call cuCtxPushCurrent", 1, 1, 0},
                                      {"process end", 0, 0, 0}};
  BOOST_TEST(audit.seen() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(chains_begin_with_the_caller) {
  const Audit audit("leak_and_check");
  const Event& push = audit.Find("call cuCtxPushCurrent");
  const std::string guest = FileName(Required("CUGUEST_TEST_AUDIT_GUEST"));
  const std::string program = FileName(Required("CUGUEST_TEST_AUDIT_PROGRAM"));
  const std::vector<std::string> objects = audit.Objects(push);
  BOOST_REQUIRE(objects.size() >= 3u);
  BOOST_TEST(objects[0] == guest);
  BOOST_TEST(objects[1] == program);
  BOOST_TEST(push.context == audit.Find("context cuCtxCreate").context);
  const auto& frames = *push.chain;
  for (size_t i = 1; i < frames.size(); ++i) {
    BOOST_TEST(frames[i - 1].address <= frames[i].address);
  }
  // The program's part of the stack is the same in the later call.
  const auto& later = *audit.Find("check cuCtxSynchronize").chain;
  BOOST_TEST(later.at(later.size() - 2).address == frames.at(frames.size() - 2).address);
  const std::vector<Object>& known = audit.process().objects;
  const auto has_build_id = [&](const Object& object) {
    return FileName(object.path) == guest && object.build_id.size() == 40;
  };
  BOOST_TEST(std::count_if(known.begin(), known.end(), has_build_id) == 1);
}

BOOST_AUTO_TEST_CASE(runtime_calls_are_events_as_written) {
  const Audit audit("runtime_sets_device");
  BOOST_TEST(audit.status == 0);
  const std::vector<Seen> expected = {
      {"context cudaSetDevice", 0, 0, 0}, {"call cuDevicePrimaryCtxRetain", 0, 0, 0},
      {"call cudaSetDevice", 0, 1, 0},    {"used cudaMalloc", 1, 1, 0},
      {"call cudaMalloc", 0, 1, 0},       {"thread", 0, 0, 0},
      {"call cudaSetDevice", 1, 1, 101},  {"call cudaGetLastError", 1, 1, 101},
      {"process end", 0, 0, 0},           {"check", 1, 1, 0}};
  BOOST_TEST(audit.seen() == expected, boost::test_tools::per_element());
  BOOST_TEST(audit.Find("context cudaSetDevice").primary);
  BOOST_CHECK(audit.Find("call cuDevicePrimaryCtxRetain").runtime == Runtime::kShared);
  BOOST_CHECK(audit.Find("call cudaSetDevice").runtime == Runtime::kNone);
  BOOST_TEST(audit.Find("context cudaSetDevice").device == 0);
  BOOST_TEST(audit.Find("call cudaSetDevice", 1).device == 99);
}

BOOST_AUTO_TEST_CASE(unloaded_library_keeps_its_name) {
  const Audit audit("replaces_guest");
  BOOST_TEST(audit.status == 0);
  const auto offset = [&](size_t number) {
    return audit.Find("call cuCtxPushCurrent", number).chain->at(0).offset;
  };
  BOOST_TEST(offset(0) == offset(5));  // the same code, whose object tells them apart
  for (size_t i = 0; i < 6; ++i) {
    const char* guest = i < 3 ? "CUGUEST_TEST_AUDIT_GUEST" : "CUGUEST_TEST_AUDIT_OTHER_GUEST";
    BOOST_TEST(audit.Objects(audit.Find("call cuCtxPushCurrent", i)).at(0) ==
               FileName(Required(guest)));
  }
}

BOOST_AUTO_TEST_CASE(forked_child_has_its_own_channel, *cudasim_test::OnlySim()) {
  const Audit audit("forks");
  BOOST_TEST(audit.status == 0);
  BOOST_REQUIRE(audit.reader->processes().size() == 2u);
  const auto& processes = audit.reader->processes();
  const ChannelProcess& child = *processes[processes[0]->pid == audit.pid ? 1 : 0];
  BOOST_TEST(child.forked);
  BOOST_TEST(child.parent == audit.pid);
  const std::vector<Event>& events = audit.events.at(child.pid);
  BOOST_REQUIRE(!events.empty());
  BOOST_TEST(Describe(events[0]) == "call cuDeviceGetCount");
  BOOST_TEST(events[0].result == 3);
  BOOST_TEST(events[0].chain->size() >= 3u);
  BOOST_TEST(CountOf(events, "process end") == 0u);  // _exit
  BOOST_TEST(CountOf(audit.events.at(audit.pid), "call cuCtxPushCurrent") == 2u);
  BOOST_TEST(CountOf(audit.events.at(audit.pid), "call cuDeviceGetCount") == 0u);
}

BOOST_AUTO_TEST_CASE(children_of_busy_threads, *cudasim_test::OnlySim()) {
  const Audit audit("forks_among_threads");
  BOOST_TEST(audit.status == 0);
  BOOST_REQUIRE(audit.reader->processes().size() == 11u);
  for (const auto& process : audit.reader->processes()) {
    BOOST_TEST(process->broken == 0u);
    if (process->pid == audit.pid) continue;
    BOOST_TEST(process->forked);
    BOOST_TEST(CountOf(audit.events.at(process->pid), "call cuDeviceGetCount") == 1u);
  }
}

BOOST_AUTO_TEST_CASE(current_context_before_and_after) {
  const Audit audit("moves_between_contexts");
  BOOST_TEST(audit.status == 0);
  const std::vector<Seen> expected = {{"context cuCtxCreate", 0, 0, 0},
                                      {"call cuCtxCreate", 0, 1, 0},
                                      {"context cuCtxCreate", 1, 1, 0},
                                      {"call cuCtxCreate", 1, 2, 0},
                                      {"call cuCtxPushCurrent", 2, 1, 0},
                                      {"call cuCtxPopCurrent", 1, 2, 0},
                                      {"call cuCtxPopCurrent", 2, 1, 0},
                                      {"call cuCtxSetCurrent", 1, 2, 0},
                                      {"call cuCtxDestroy", 2, 0, 0},
                                      {"process end", 0, 0, 0},
                                      {"check", 0, 0, 0}};
  BOOST_TEST(audit.seen() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(childs_exit_is_not_its_parents) {
  const Audit audit("child_exits");
  BOOST_TEST(audit.status == 0);
  BOOST_TEST(audit.reader->processes().size() == 1u);
  BOOST_TEST(audit.seen().back() == (Seen{"call cuCtxCreate", 0, 1, 0}));
}

BOOST_AUTO_TEST_CASE(threads_keep_their_order) {
  const Audit audit("many_threads");
  BOOST_TEST(audit.status == 0);
  BOOST_TEST(audit.process().lost == 0u);
  BOOST_TEST(audit.process().broken == 0u);
  std::map<std::uint32_t, std::vector<std::string>> by_thread;
  for (const Event& event : audit.events.at(audit.pid)) {
    by_thread[event.thread].push_back(Describe(event));
    if (event.kind == EventKind::kCall && event.chain->empty()) BOOST_FAIL("a call without chain");
  }
  by_thread.erase(0);  // the process's end
  by_thread.erase(1);
  BOOST_REQUIRE(by_thread.size() == 64u);
  for (const auto& [thread, calls] : by_thread) {
    BOOST_TEST_CONTEXT("thread " << thread) {
      BOOST_REQUIRE(calls.size() == 401u);
      for (size_t i = 0; i < 400; ++i) {
        const char* expected = i % 2 == 0 ? "call cuCtxPushCurrent" : "call cuCtxPopCurrent";
        if (calls[i] != expected) BOOST_FAIL(calls[i] << " as call " << i);
      }
      BOOST_TEST(calls.back() == "thread");
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_lost_by_exit_without_handlers) {
  const Audit left("leaves_at_once");
  BOOST_TEST((WIFEXITED(left.status) && WEXITSTATUS(left.status) == 3));
  BOOST_TEST(left.seen().back() == (Seen{"call cuCtxPopCurrent", 1, 1, 0}));
  const Audit killed("is_killed");
  BOOST_TEST((WIFSIGNALED(killed.status) && WTERMSIG(killed.status) == SIGKILL));
  BOOST_TEST(killed.seen().back() == (Seen{"call cuCtxPopCurrent", 1, 1, 0}));
}

BOOST_AUTO_TEST_CASE(destroyed_handle_is_told_at_entry, *cudasim_test::OnlySim()) {
  const Audit audit("uses_a_destroyed_handle");
  const std::vector<Seen> seen = audit.seen();
  BOOST_REQUIRE(seen.size() >= 3u);
  const Event& entered = audit.Find("entered cuCtxPushCurrent");
  BOOST_TEST(entered.context == 1u);
  BOOST_TEST(entered.before == 2u);
  BOOST_TEST(entered.chain->size() >= 3u);
  BOOST_TEST(audit.Find("call cuCtxPushCurrent").after == 1u);
}

void CheckWhatIsOver(const Audit& audit) {
  BOOST_TEST(WTERMSIG(audit.status) == SIGABRT);  // the call is in the channel all the same
  std::vector<const Event*> stale;
  for (const Event& event : audit.events.at(audit.pid)) {
    if (event.kind == EventKind::kStale) stale.push_back(&event);
  }
  BOOST_REQUIRE(stale.size() == 2u);  // and nothing of what lives, or was made anew
  BOOST_TEST(stale[0]->name == "cuMemFree");
  BOOST_TEST(stale[0]->result == 1);
  BOOST_TEST(stale[0]->setting == static_cast<int>(ObjectKind::kMemory));
  BOOST_TEST(stale[1]->name == "cuEventQuery");
  BOOST_TEST(stale[1]->setting == static_cast<int>(ObjectKind::kEvent));
  for (const Event* event : stale) {
    BOOST_TEST(event->context == 2u);
    const auto made =
        std::find_if(audit.events.at(audit.pid).begin(), audit.events.at(audit.pid).end(),
                     [&](const Event& one) {
                       return one.kind == EventKind::kMade && one.value == event->old_value;
                     });
    BOOST_REQUIRE((made != audit.events.at(audit.pid).end()));
    BOOST_TEST(made->name == (event == stale[0] ? "cuMemAlloc" : "cuEventCreate"));
    BOOST_TEST(made->chain->size() >= 3u);
  }
}

BOOST_AUTO_TEST_CASE(stale_objects_are_told, *cudasim_test::OnlySim()) {
  CheckWhatIsOver(Audit("uses_what_is_over"));
}

BOOST_AUTO_TEST_CASE(settings_tell_what_they_replace) {
  const Audit audit("changes_settings");
  BOOST_TEST(audit.status == 0);
  const Event& second = audit.Find("call cuCtxSetLimit", 1);
  BOOST_TEST(second.setting == 0);  // CU_LIMIT_STACK_SIZE
  BOOST_TEST(second.value == 2 * second.old_value);
  const Event& third = audit.Find("call cuCtxSetLimit", 2);
  BOOST_TEST(third.value == second.old_value);
  BOOST_TEST(third.old_value == second.value);
  BOOST_TEST(third.context == 1u);
  BOOST_TEST(audit.Find("call cuCtxSetLimit").old_value == ~std::uint64_t{0});
  BOOST_TEST(audit.Find("call cuThreadExchangeStreamCaptureMode").value == 2u);
}

BOOST_AUTO_TEST_CASE(flood_is_read_while_it_is_written) {
  const Audit audit("floods");
  BOOST_TEST(audit.status == 0);
  BOOST_TEST(audit.process().lost == 0u);
  BOOST_TEST(CountOf(audit.events.at(audit.pid), "call cuCtxPopCurrent") == 40000u);
}

BOOST_AUTO_TEST_CASE(overwritten_channel_is_left_behind) {
  const Audit audit("overwrites_its_channel");
  BOOST_TEST(audit.status == 0);
  BOOST_TEST(audit.process().broken >= 1u);
  BOOST_TEST(CountOf(audit.events.at(audit.pid), "call cuCtxPushCurrent") >= 1u);
  BOOST_TEST(audit.process().ended);
}

BOOST_AUTO_TEST_CASE(program_runs_without_a_reader) {
  const Audit audit("many_threads", {{kChannelVariable, "cuguest-audit-nobody:key"}});
  BOOST_TEST(audit.status == 0);
  BOOST_TEST(audit.reader->processes().empty());
}

BOOST_AUTO_TEST_CASE(unknown_source_is_noted) {
  const Audit audit("leak_and_check", {{kSourceVariable, "nvprof"}});
  BOOST_TEST(audit.status == 0);
  BOOST_TEST(audit.process().source == "");
  BOOST_REQUIRE(audit.process().notes.size() == 1u);
  BOOST_TEST(audit.process().notes[0] == "CUGUEST_AUDIT_SOURCE=nvprof: no such source.");
}

// The same through CUPTI and the Sanitizer API, of which small parts stand on the simulation.
BOOST_AUTO_TEST_SUITE(cupti, *cudasim_test::OnlySim())

std::map<std::string, std::string> With(std::map<std::string, std::string> more) {
  more.insert({kSourceVariable, "cupti"});
  more.insert({kCuptiVariable, Required("CUGUEST_TEST_AUDIT_CUPTI")});
  more.insert({kSanitizerVariable, Required("CUGUEST_TEST_AUDIT_CUPTI")});
  return more;
}

void CompareWithSimulation(const std::map<std::string, std::string>& environment,
                           const std::string& source) {
  for (const char* scenario :
       {"leak_and_check", "runtime_sets_device", "changes_settings", "moves_between_contexts",
        "makes_green_contexts", "uses_a_destroyed_handle"}) {
    BOOST_TEST_CONTEXT(scenario) {
      const Audit plain(scenario);
      const Audit audit(scenario, environment);
      BOOST_TEST(audit.status == 0);
      BOOST_TEST(audit.process().source == source);
      BOOST_TEST(audit.seen() == plain.seen(), boost::test_tools::per_element());
      for (size_t i = 0; i < plain.events.at(plain.pid).size(); ++i) {
        const Event& one = audit.events.at(audit.pid).at(i);
        const Event& other = plain.events.at(plain.pid).at(i);
        BOOST_TEST_CONTEXT(Describe(other)) {
          BOOST_TEST(one.context == other.context);
          BOOST_TEST(one.device == other.device);
          BOOST_TEST(one.primary == other.primary);
          BOOST_TEST(one.setting == other.setting);
          // Makers are numbered by their chains, which have other offsets in another library.
          BOOST_TEST((one.value == other.value || one.kind == EventKind::kMade));
          BOOST_TEST(one.old_value == other.old_value);
          BOOST_TEST(one.chain->size() == other.chain->size());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(stale_objects_are_told) {
  CheckWhatIsOver(Audit("uses_what_is_over", With({})));
  CheckWhatIsOver(Audit("uses_what_is_over", With({{kSourceVariable, "sanitizer"}})));
}

BOOST_AUTO_TEST_CASE(events_are_those_of_the_simulation) {
  CompareWithSimulation(With({}), "cupti");
}

BOOST_AUTO_TEST_CASE(sanitizers_events_are_those_of_the_simulation) {
  CompareWithSimulation(With({{kSourceVariable, "sanitizer"}}), "sanitizer");
}

BOOST_AUTO_TEST_CASE(next_source_is_tried) {
  const Audit audit("leak_and_check", With({{"CUGUEST_TEST_CUPTI_RIVAL", "Nsight Systems"},
                                            {kSourceVariable, "cupti,sanitizer"}}));
  BOOST_TEST(audit.process().source == "sanitizer");
  BOOST_REQUIRE(!audit.process().notes.empty());
  BOOST_TEST(audit.process().notes[0].find("Nsight Systems") != std::string::npos);
  BOOST_TEST(audit.seen().size() == 7u);
}

BOOST_AUTO_TEST_CASE(what_it_does_not_see_is_noted) {
  const Audit audit("leak_and_check", With({}));
  BOOST_TEST(audit.process().notes.size() == 2u);
}

BOOST_AUTO_TEST_CASE(rival_subscriber_is_named) {
  const Audit audit("leak_and_check", With({{"CUGUEST_TEST_CUPTI_RIVAL", "Nsight Systems"}}));
  BOOST_TEST(audit.status == 0);
  BOOST_TEST(audit.process().source == "");
  BOOST_REQUIRE(audit.process().notes.size() == 1u);
  BOOST_TEST(audit.process().notes[0] ==
             "cupti: Nsight Systems has subscribed, and there can be one subscriber.");
}

BOOST_AUTO_TEST_CASE(newer_cupti_is_shared_with_a_rival) {
  const Audit audit("leak_and_check", With({{"CUGUEST_TEST_CUPTI_RIVAL", "a profiler"},
                                            {"CUGUEST_TEST_CUPTI_VERSION", "130300"}}));
  BOOST_TEST(audit.process().source == "cupti");
  BOOST_TEST(audit.seen().size() == 7u);
}

BOOST_AUTO_TEST_CASE(missing_library_is_noted) {
  const Audit audit("leak_and_check", With({{kCuptiVariable, "/no/such/libcupti.so"}}));
  BOOST_TEST(audit.status == 0);
  BOOST_REQUIRE(audit.process().notes.size() == 1u);
  BOOST_TEST(audit.process().notes[0].find("cupti: ") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE_END()
