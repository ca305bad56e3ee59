// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/report.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>

#include "audit/command/advice.h"
#include "audit/command/result_name.h"

#include "audit/command/printable.h"

BOOST_AUTO_TEST_SUITE(audit_report)

using namespace cuguest::audit;

namespace {

Function In(const std::string& object, const std::string& name, int line = 0) {
  Function function;
  function.object = object;
  function.offset = 0x1a2b;
  function.name = name;
  function.symbol = name;
  if (line != 0) function.file = "/src/" + name + ".cc";
  function.line = line;
  return function;
}

NamedContext Context(ContextId id, bool primary, const std::string& creator) {
  NamedContext context;
  context.note.id = id;
  context.note.device = 0;
  context.note.primary = primary;
  if (!creator.empty()) context.creator = In(creator, "Create");
  return context;
}

NamedFinding Replaced() {
  NamedFinding named;
  named.finding.kind = FindingKind::kReplacedContext;
  named.finding.call = "cudaSetDevice";
  named.finding.count = 1;
  named.finding.thread = 3;
  named.finding.time_ns = 2'310'400'000;
  named.process = 1;
  named.culprit = In("/lib/libc10_cuda.so", "c10::cuda::SetDevice");
  named.victim = In("/opt/libmine.so", "Encode", 7);
  named.before = Context(7, false, "/opt/libmine.so");
  named.after = Context(2, true, "");
  named.returned = In("/lib/libc10_cuda.so", "c10::cuda::Guard");
  named.chain = {named.culprit, named.returned, In("/lib/libtorch.so", ""), named.victim,
                 In("/bin/app", "main")};
  named.victim_function = 3;
  return named;
}

Report Of(NamedFinding named) {
  Report report;
  report.subject = "app --fast";
  ReportedProcess process;
  process.process.number = 1;
  process.process.pid = 4711;
  process.process.program = "/bin/app";
  process.source = "cupti";
  process.notes = {"does not see calls of a static runtime"};
  process.events = 10;
  report.processes.push_back(process);
  report.findings.push_back(std::move(named));
  return report;
}

bool Has(const std::string& text, const std::string& part) {
  const bool has = text.find(part) != std::string::npos;
  if (!has) BOOST_TEST_MESSAGE(part << "\nis not in\n" << text);
  return has;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_finding_names_culprit_and_victim) {
  BOOST_TEST(ReportText(Of(Replaced())) == R"(
cuguest-audit: app --fast
1 finding, 1 library
[1] replaced current context                libc10_cuda.so  c10::cuda::Guard
    call:   cudaSetDevice
    victim: libmine.so  Encode (Encode.cc:7)
    had:    context 7 (device 0, created by libmine.so in Create) was current
    left:   context 2 (primary of device 0)
    why:    libmine.so's next launch runs on GPU 0, in context 2, not 7, where its streams and modules are invalid
    to do:  in c10::cuda::Guard: cuCtxGetCurrent before, and cuCtxSetCurrent of that when the work is done:
            cudaSetDevice restores no context; with cuguest: runtime::CalleeScope around it
            1 time, thread 3 at 2.310 s
      at libc10_cuda.so  c10::cuda::SetDevice
      by libc10_cuda.so  c10::cuda::Guard
      by libtorch.so+0x1a2b
      by libmine.so  Encode (Encode.cc:7)

app (4711): events from cupti
  does not see calls of a static runtime
)");
}

BOOST_AUTO_TEST_CASE(threads_have_their_names) {
  NamedFinding named = Replaced();
  named.finding.os_thread = std::make_shared<OsThread>(OsThread{4712, "wor\nker"});
  BOOST_TEST(Has(ReportText(Of(named)), "1 time, thread 3 (tid 4712, \"wor\\nker\") at 2.310 s\n"));
  BOOST_TEST(Has(ReportJson(Of(named)), "\"tid\": 4712"));
  BOOST_TEST(Has(ReportJson(Of(named)), "\"thread_name\": \"wor\\u000aker\""));
  named.finding.count = 2;
  BOOST_TEST(Has(ReportText(Of(named)), "2 times, first on thread 3 (tid 4712, "));
}

BOOST_AUTO_TEST_CASE(a_leak_tells_the_stacks_depth) {
  NamedFinding named = Replaced();
  named.finding.kind = FindingKind::kLeakedPush;
  named.finding.depth = 2;
  named.finding.count = 5;
  const std::string leaked = ReportText(Of(named));
  BOOST_TEST(Has(leaked,
                 "left:   context 2 (primary of device 0); 2 entries more on the context stack\n"));
  BOOST_TEST(Has(leaked, "5 times, first on thread 3 at 2.310 s\n"));
  named.finding.kind = FindingKind::kExtraPop;
  named.finding.depth = -1;
  named.after = NamedContext();
  BOOST_TEST(
      Has(ReportText(Of(named)), "left:   no context; 1 entry fewer on the context stack\n"));
}

BOOST_AUTO_TEST_CASE(a_victim_that_did_not_call_has_a_chain) {
  NamedFinding named = Replaced();
  named.finding.kind = FindingKind::kResetPrimary;
  named.victim_function = named.chain.size();
  named.victim_chain = {In("/opt/libmine.so", "Retain", 9)};
  named.chain.push_back(In("/lib/libc.so.6", "__libc_start_main"));
  named.victim_function = named.chain.size();
  const std::string text = ReportText(Of(named));
  BOOST_TEST(Has(
      text, "      by app  main\n    the victim:\n      at libmine.so  Retain (Retain.cc:9)\n"));
}

BOOST_AUTO_TEST_CASE(an_object_has_maker_and_end) {
  NamedFinding named = Replaced();
  named.finding.kind = FindingKind::kUsedAfterContext;
  named.finding.call = "cuEventQuery";
  named.victim = {};
  named.finding.object.kind = ObjectKind::kEvent;
  named.maker = In("/opt/libmine.so", "Begin", 5);
  named.finding.object.maker = {1, 1};
  const std::string of_event =
      "    of:     event of context 7 (device 0, created by libmine.so in Create), made by "
      "libmine.so  Begin (Begin.cc:5)\n";
  const std::string unknown = ReportText(Of(named));
  BOOST_TEST(Has(unknown, of_event));
  BOOST_TEST(unknown.find("ended:") == std::string::npos);
  named.finding.object.ended_by = "cuCtxDestroy";
  named.finding.object.ended_on = 2;
  named.finding.object.ended_ns = 1'500'000;
  named.ender = In("/bin/app", "Stop", 3);
  BOOST_TEST(Has(ReportText(Of(named)), of_event + "    ended:  by app  Stop (Stop.cc:3), with "
                                                   "cuCtxDestroy on thread 2 at 1.500 ms\n"));
  const std::string json = ReportJson(Of(named));
  for (const char* member :
       {"\"kind\": \"event\"", "\"maker\": {", "\"ender\": {", "\"ended_by\": \"cuCtxDestroy\"",
        "\"ended_thread\": 2", "\"ended_ns\": 1500000"}) {
    BOOST_TEST(Has(json, member));
  }
}

BOOST_AUTO_TEST_CASE(long_chains_are_cut) {
  NamedFinding named = Replaced();
  named.chain.insert(named.chain.begin() + 1, 40, In("/lib/libtorch.so", "Recurse"));
  named.victim_function = 43;
  BOOST_TEST(Has(ReportText(Of(named)), "      ... 32 frames more\n"));
}

BOOST_AUTO_TEST_CASE(long_names_are_shortened) {
  NamedFinding named = Replaced();
  const std::string list = "<" + std::string(200, 'T') + ">";
  named.returned.name = "at::native::empty_strided" + list + "::Run";
  named.returned.file = "/src/native.cc";
  named.returned.line = 7;
  named.victim.name = "Run(" + std::string(200, 'x') + ")::{lambda()#1}::operator()";
  const std::string text = ReportText(Of(named));
  BOOST_TEST(Has(text, "libc10_cuda.so  at::native::empty_strided<...>::Run (native.cc:7)\n"));
  BOOST_TEST(Has(text, "Run(...)::{lambda()#1}::operator() (Encode.cc:7)\n"));
  named.victim.name = std::string(300, 'v');
  const std::string cut = ReportText(Of(named));
  std::size_t longest = 0;
  for (std::size_t at = 0, end = 0; at < cut.size(); at = end + 1) {
    end = cut.find('\n', at);
    longest = std::max(longest, end - at);
  }
  BOOST_TEST(longest <= 120u, cut);
}

BOOST_AUTO_TEST_CASE(names_for_people) {
  for (const auto& [name, brief] : std::initializer_list<std::pair<std::string, std::string>>{
           {"Encode", "Encode"},
           {"f<int>::g", "f<int>::g"},
           {"f<std::vector<int>, 3>::g<std::tuple<char, int>>", "f<...>::g<...>"},
           {"operator<", "operator<"},
           {"A::operator<<", "A::operator<<"},
           {"A::operator->", "A::operator->"},
           {"(anonymous namespace)::Leak", "Leak"},
           {"f<(anonymous namespace)::Long>::g", "f<...>::g"},
           {"f<unfinished argument list", "f<unfinished argument list"},
           {"", ""},
       }) {
    BOOST_TEST(ShortName(name, 60) == brief, name);
  }
  BOOST_TEST(ShortName(std::string(100, 'a'), 60).size() == 60u);
}

BOOST_AUTO_TEST_CASE(libraries_of_one_name_are_told_apart) {
  Report report = Of(Replaced());
  report.findings.push_back(Replaced());
  report.findings[1].culprit.object = report.findings[1].returned.object = "/opt/v2/libc10_cuda.so";
  const std::string text = ReportText(report);
  BOOST_TEST(Has(text, "lib/libc10_cuda.so  c10::cuda::Guard\n"));
  BOOST_TEST(Has(text, "v2/libc10_cuda.so  c10::cuda::Guard\n"));
  BOOST_TEST(Has(text, "victim: libmine.so  Encode"));
  report.paths = true;
  BOOST_TEST(Has(ReportText(report), "victim: /opt/libmine.so  Encode"));
}

BOOST_AUTO_TEST_CASE(findings_that_follow_from_another_name_it) {
  Report report = Of(Replaced());
  report.findings.push_back(Replaced());
  report.findings[0].consequence_of = 2;
  BOOST_TEST(Has(ReportText(report),
                 "    cause:  [2] replaced current context by libc10_cuda.so  c10::cuda::Guard: "
                 "repair that first\n"));
  BOOST_TEST(Has(ReportJson(report), "\"consequence_of\": 2"));
}

BOOST_AUTO_TEST_CASE(results_have_names) {
  BOOST_TEST(ResultName("cuMemFree", 4) == "CUDA_ERROR_DEINITIALIZED");
  BOOST_TEST(ResultName("cudaFree", 4) == "cudaErrorCudartUnloading");
  BOOST_TEST(ResultName("cublasCreate", 3) == "cudaErrorInitializationError");
  BOOST_TEST(ResultName("cuMemFree", 4711) == "error 4711");
}

BOOST_AUTO_TEST_CASE(each_kind_has_advice) {
  for (std::size_t i = 0; i < kFindingKinds; ++i) {
    NamedFinding named = Replaced();
    named.finding.kind = static_cast<FindingKind>(i);
    for (const bool has_victim : {true, false}) {
      BOOST_TEST(Consequence(named, has_victim ? "host" : "") != "");
    }
    const std::string text = ReportText(Of(named));
    BOOST_TEST(Has(text, "\n    why:    "));
    BOOST_TEST(Has(text, "\n    to do:  in c10::cuda::"));
    BOOST_TEST(AdviceOf(named.finding).plain != std::string());
    BOOST_TEST(text.find(".md") == std::string::npos);  // pages that an installation does not have
  }
}

// Kind, call and result.
BOOST_AUTO_TEST_CASE(advice_depends_on_the_call) {
  const auto advice = [](FindingKind kind, const char* call, int result = 0) {
    Finding finding;
    finding.kind = kind;
    finding.call = call;
    finding.result = result;
    return std::string(AdviceOf(finding).plain);
  };
  constexpr FindingKind kCapture = FindingKind::kBrokeCapture;
  const std::string relaxed = advice(kCapture, "cuMemAlloc", 900);
  BOOST_TEST(Has(relaxed, "cuThreadExchangeStreamCaptureMode(relaxed) around the call"));
  for (const char* call : {"cudaMalloc", "cudaFree", "cudaEventQuery", "cuModuleUnload"}) {
    BOOST_TEST_CONTEXT(call) BOOST_TEST(advice(kCapture, call, 900) == relaxed);
  }
  for (const char* call :
       {"cuCtxSynchronize", "cudaDeviceSynchronize", "cuStreamGetId", "cudaStreamGetFlags",
        "cuStreamAddCallback", "cudaGraphLaunch", "cudaMemcpyPeerAsync"}) {
    BOOST_TEST_CONTEXT(call) BOOST_TEST(Has(advice(kCapture, call, 900), "no capture mode helps"));
  }
  for (const int result : {902, 905, 906, 907}) {
    BOOST_TEST_CONTEXT(result)
    BOOST_TEST(Has(advice(kCapture, "cudaEventQuery", result), "no capture mode helps"));
  }
  constexpr FindingKind kSetting = FindingKind::kChangedSetting;
  for (const char* call : {"cuCtxSetLimit", "cudaDeviceSetLimit", "cudaThreadSetLimit"}) {
    BOOST_TEST_CONTEXT(call) BOOST_TEST(Has(advice(kSetting, call), "cuCtxGetLimit before"));
  }
  for (const char* call : {"cudaSetDeviceFlags", "cuDevicePrimaryCtxSetFlags"}) {
    BOOST_TEST_CONTEXT(call) BOOST_TEST(Has(advice(kSetting, call), "cuDevicePrimaryCtxGetState"));
  }
  BOOST_TEST(Has(advice(kSetting, "cuCtxSetFlags"), "cuCtxGetFlags before"));
  BOOST_TEST(Has(advice(kSetting, "cudaDeviceSetCacheConfig"), "of your own kernels"));
  BOOST_TEST(Has(advice(kSetting, "cuCtxSetSharedMemConfig"), "cuCtxGetSharedMemConfig before"));
  constexpr FindingKind kQuery = FindingKind::kQueryCreatedPrimary;
  BOOST_TEST(advice(kQuery, "cudaDestroyTextureObject") == advice(kQuery, "cudaFree"));
  BOOST_TEST(advice(kQuery, "cudaFree") != advice(kQuery, "cudaMemGetInfo"));
  BOOST_TEST(advice(kQuery, "cudaSetDevice") != advice(kQuery, "cudaSetDeviceFlags"));
  BOOST_TEST(advice(FindingKind::kLeakedPush, "cuCtxCreate") !=
             advice(FindingKind::kLeakedPush, "cuCtxPushCurrent"));
}

BOOST_AUTO_TEST_CASE(colors_are_escapes_and_nothing_else) {
  Report report = Of(Replaced());
  report.findings.push_back(Replaced());
  report.findings[1].consequence_of = 1;
  report.findings[1].returned.name = std::string(59, 'f');
  report.findings[1].returned.object = "/lib/" + std::string(60, 'o');
  report.processes.push_back(report.processes[0]);
  report.processes[1].lost = 2;
  const std::string plain = ReportText(report);
  const std::string colored = ReportText(report, true);
  BOOST_TEST(Has(colored, "\x1b[1;31m2 findings, 1 library\x1b[0m\n"));
  BOOST_TEST(Has(colored, "[1] \x1b[1;31mreplaced current context\x1b[0m                "));
  BOOST_TEST(Has(colored, "\n    \x1b[36mwhy:\x1b[0m    libmine.so's"));
  std::string stripped;
  for (std::size_t at = 0; at < colored.size();) {
    if (colored[at] == '\x1b') {
      at = colored.find('m', at) + 1;
    } else {
      stripped += colored[at++];
    }
  }
  BOOST_TEST(stripped == plain);
  report.findings.clear();
  BOOST_TEST(Has(ReportText(report, true), "\x1b[1;33m0 findings, 0 libraries"));
  report.processes.pop_back();
  BOOST_TEST(Has(ReportText(report, true), "\x1b[1;32m0 findings, 0 libraries"));
}

BOOST_AUTO_TEST_CASE(processes_are_told_apart) {
  Report report = Of(Replaced());
  report.findings[0].processes = 2;
  report.findings[0].finding.count = 4;
  ReportedProcess other = report.processes[0];
  other.process.number = 2;
  other.process.pid = 4712;
  report.processes.push_back(other);
  other.process.number = 3;
  other.process.pid = 4713;
  other.source = "";
  other.notes = {"CUPTI: held by libprofiler.so"};
  other.lost = 2;
  other.broken = 1;
  report.processes.push_back(other);
  const std::string text = ReportText(report);
  BOOST_TEST(Has(text, "1 finding, 1 library; 1 process was not audited\n"));
  BOOST_TEST(Has(text, "4 times, first on thread 3 at 2.310 s of app (4711); in 2 processes\n"));
  BOOST_TEST(Has(text, "app (4711) and 1 other process: events from cupti\n"));
  BOOST_TEST(Has(text,
                 "app (4713): not audited, because no source of events could be had\n"
                 "  CUPTI: held by libprofiler.so\n"
                 "  2 events were lost; 1 event was cut off by the process's end\n"));
}

BOOST_AUTO_TEST_CASE(what_was_left_out_is_counted) {
  Report report = Of(Replaced());
  report.findings.clear();
  report.suppressed = {{"known", 2, 9}};
  report.other_objects = 1;
  report.signal = 11;
  const std::string text = ReportText(report);
  BOOST_TEST(Has(text, "the program was terminated by signal 11\n0 findings, 0 libraries\n"));
  BOOST_TEST(Has(text, "suppressed: 2 findings by \"known\"\nleft out by --object: 1 finding\n"));
}

BOOST_AUTO_TEST_CASE(control_characters_are_escaped) {
  const std::string evil = "a\x1b[31m\n\t\x7f\xc2\x9b\xc3\xa9";
  const std::string shown = "a\\x1b[31m\\n\\t\\x7f\\xc2\\x9b\xc3\xa9";
  BOOST_TEST(Printable(evil) == shown);
  BOOST_TEST(PrintablePattern(evil) == "a?[31m?????\xc3\xa9");
  NamedFinding named = Replaced();
  named.culprit = In(evil, evil, 3);
  named.victim = In(evil, "");
  named.after = Context(2, true, evil);
  named.chain[0] = named.culprit;
  named.finding.call = evil;
  Report report = Of(named);
  report.subject = evil;
  report.processes[0].process.program = evil;
  report.processes[0].source = evil;
  report.processes[0].notes = {evil};
  report.processes.push_back(report.processes[0]);
  report.processes[1].unaudited = evil;
  report.suppressed = {{evil, 1, 1}};
  report.gaps = report.notes = report.unused_suppressions = {evil};
  for (const bool is_verbose : {false, true}) {
    report.is_verbose = is_verbose;
    const std::string text = ReportText(report);
    BOOST_TEST(text.find_first_of("\x1b\t\x7f") == std::string::npos, text);
    BOOST_TEST(text.find("\xc2\x9b") == std::string::npos, text);
    BOOST_TEST(Has(text, "unused suppression: " + shown + "\n"));
  }
}

BOOST_AUTO_TEST_CASE(complete_reports_miss_nothing) {
  using Change = void (*)(Report*);
  const Change gaps[] = {
      [](Report* report) { report->processes[0].lost = 1; },
      [](Report* report) { report->processes[0].broken = 1; },
      [](Report* report) { report->processes[0].dropped = 1; },
      [](Report* report) { report->processes[0].limits = {"too many of them"}; },
      [](Report* report) { report->processes[0].source = ""; },
      [](Report* report) { report->processes[0].unaudited = "of a reason"; },
      [](Report* report) { report->processes[0].unaudited = kNotFollowed; },
      [](Report* report) { report->gaps = {"the log was cut off"}; },
  };
  BOOST_TEST(IsComplete(Of(Replaced())));
  BOOST_TEST(IsComplete(Report()));
  for (const Change gap : gaps) {
    Report report = Of(Replaced());
    gap(&report);
    BOOST_TEST(!IsComplete(report), ReportText(report));
    BOOST_TEST(Has(ReportJson(report), "\"complete\": false"));
  }
  Report report = Of(Replaced());
  report.processes.push_back(report.processes[0]);
  report.processes[1].unaudited = kNotFollowed;
  BOOST_TEST(IsComplete(report));
}

BOOST_AUTO_TEST_CASE(dropped_findings_are_counted) {
  Report report = Of(Replaced());
  report.processes[0].dropped = 2;
  BOOST_TEST(Has(ReportText(report),
                 "2 times a finding was dropped, of which there are more than 16384\n"));
}

BOOST_AUTO_TEST_CASE(limits_are_named) {
  Report report = Of(Replaced());
  report.processes[0].lost = 1;
  report.processes[0].limits = {"too many of one", "too many\nof another"};
  BOOST_TEST(Has(ReportText(report),
                 "  1 event was lost\n  a limit was reached: too many of one\n"
                 "  a limit was reached: too many\\nof another\n"));
  BOOST_TEST(Has(ReportJson(report), "\"too many of one\""));
}

BOOST_AUTO_TEST_CASE(verbose_reports_have_whole_chains) {
  NamedFinding named = Replaced();
  named.chain.resize(40, named.chain[1]);
  named.victim_function = 39;
  Report report = Of(named);
  BOOST_TEST(Has(ReportText(report), "... 28 frames more\n"));
  BOOST_TEST(Has(ReportText(report), "app (4711): events from cupti\n"));
  report.is_verbose = true;
  BOOST_TEST(!Has(ReportText(report), "more\n"));
  BOOST_TEST(Has(ReportText(report), "app (4711): events from cupti, 10 events of /bin/app\n"));
}

BOOST_AUTO_TEST_CASE(json_leaves_out_what_is_not_known) {
  NamedFinding named = Replaced();
  named.before = NamedContext();
  named.victim = Function();
  const std::string json = ReportJson(Of(named));
  BOOST_TEST(Has(json, "\"before\": null"));
  BOOST_TEST(Has(json, "\"victim\": null"));
  BOOST_TEST(Has(json, "\"kind\": \"replaced-context\""));
  BOOST_TEST(Has(json, "\"time_ns\": 2310400000"));
  BOOST_TEST(!Has(json, "\"setting\""));
}

BOOST_AUTO_TEST_SUITE_END()
