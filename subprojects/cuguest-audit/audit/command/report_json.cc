// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/command/advice.h"
#include "audit/command/json.h"
#include "audit/command/report.h"
#include "audit/command/result_name.h"

namespace cuguest::audit {

namespace {

constexpr int kVersion = 1;

// A member is left out where it is not known.
void AddFunction(const std::string& name, const Function& function, JsonWriter* json) {
  json->BeginObject(name);
  if (!function.object.empty()) json->Add("object", function.object);
  json->Add("offset", function.offset);
  if (!function.name.empty()) json->Add("function", function.name);
  if (!function.symbol.empty()) json->Add("symbol", function.symbol);
  if (!function.file.empty()) {
    json->Add("file", function.file);
    json->Add("line", function.line);
  }
  if (function.inlined) json->Add("inlined", true);
  json->End();
}

void AddChain(const std::string& name, const std::vector<Function>& chain, JsonWriter* json) {
  json->BeginArray(name);
  for (const Function& function : chain) AddFunction("", function, json);
  json->End();
}

void AddContext(const std::string& name, const NamedContext& context, JsonWriter* json) {
  if (context.note.id == 0) return json->Raw(name, "null");
  json->BeginObject(name);
  json->Add("id", context.note.id);
  if (context.note.device >= 0) json->Add("device", context.note.device);
  json->Add("primary", context.note.primary);
  if (!context.creator.object.empty()) AddFunction("creator", context.creator, json);
  json->End();
}

void AddObject(const NamedFinding& named, JsonWriter* json) {
  const ObjectNote& object = named.finding.object;
  json->BeginObject("object");
  json->Add("kind", Name(object.kind));
  if (!named.maker.object.empty()) AddFunction("maker", named.maker, json);
  if (!object.ended_by.empty()) {
    json->Add("ended_by", object.ended_by);
    AddFunction("ender", named.ender, json);
    json->Add("ended_thread", static_cast<std::uint64_t>(object.ended_on));
    json->Add("ended_ns", object.ended_ns);
  }
  json->End();
}

void AddFinding(const NamedFinding& named, JsonWriter* json) {
  const Finding& finding = named.finding;
  json->BeginObject();
  json->Add("kind", Identifier(finding.kind));
  json->Add("call", finding.call);
  json->Add("result", finding.result);
  json->Add("result_name", ResultName(finding.call, finding.result));
  json->Add("count", finding.count);
  json->Add("process", static_cast<std::uint64_t>(named.process));
  json->Add("processes", static_cast<std::uint64_t>(named.processes));
  json->Add("thread", static_cast<std::uint64_t>(finding.thread));
  if (finding.os_thread != nullptr) {
    json->Add("tid", finding.os_thread->id);
    json->Add("thread_name", finding.os_thread->name);
  }
  json->Add("time_ns", finding.time_ns);
  AddFunction("culprit", named.culprit, json);
  if (!named.returned.object.empty()) AddFunction("returned", named.returned, json);
  if (named.victim.object.empty()) {
    json->Raw("victim", "null");
  } else {
    AddFunction("victim", named.victim, json);
  }
  AddContext("before", named.before, json);
  AddContext("after", named.after, json);
  json->Add("device", finding.device);
  json->Add("depth", finding.depth);
  if (finding.kind == FindingKind::kChangedSetting) {
    json->Add("setting", finding.setting);
    json->Add("value", finding.value);
    if (finding.old_value != kUnknownValue) json->Add("old_value", finding.old_value);
  }
  if (finding.object.kind != ObjectKind::kNone) AddObject(named, json);
  const std::string victim =
      named.victim.object.empty() ? std::string() : BaseName(named.victim.object);
  json->Add("why", Consequence(named, victim));
  const Advice advice = AdviceOf(finding);
  json->Add("fix", advice.plain);
  if (*advice.cuguest != '\0') json->Add("fix_with_cuguest", advice.cuguest);
  json->Add("section", SectionOf(finding.kind));
  if (named.consequence_of != 0) {
    json->Add("consequence_of", static_cast<std::uint64_t>(named.consequence_of));
  }
  AddChain("chain", named.chain, json);
  AddChain("victim_chain", named.victim_chain, json);
  json->End();
}

void AddTexts(const std::string& name, const std::vector<std::string>& texts, JsonWriter* json) {
  json->BeginArray(name);
  for (const std::string& text : texts) json->Add("", text);
  json->End();
}

void AddProcess(const ReportedProcess& process, JsonWriter* json) {
  json->BeginObject();
  json->Add("number", static_cast<std::uint64_t>(process.process.number));
  json->Add("pid", process.process.pid);
  json->Add("parent", process.process.parent);
  json->Add("forked", process.process.forked);
  json->Add("program", process.process.program);
  if (process.source.empty()) {
    json->Raw("source", "null");
  } else {
    json->Add("source", process.source);
  }
  const std::string why = WhyUnaudited(process);
  if (!why.empty()) json->Add("unaudited", why);
  AddTexts("notes", process.notes, json);
  json->Add("events", process.events);
  json->Add("lost", process.lost);
  json->Add("broken", process.broken);
  json->Add("dropped", process.dropped);
  AddTexts("limits", process.limits, json);
  json->End();
}

}  // namespace

std::string ReportJson(const Report& report) {
  JsonWriter json;
  json.BeginObject();
  json.Add("format", "cuguest-audit");
  json.Add("version", kVersion);
  json.Add("subject", report.subject);
  json.Add("replay", report.is_replay);
  json.Add("exit_status", report.exit_status);
  json.Add("signal", report.signal);
  json.BeginArray("processes");
  for (const ReportedProcess& process : report.processes) AddProcess(process, &json);
  json.End();
  json.BeginArray("findings");
  for (const NamedFinding& named : report.findings) AddFinding(named, &json);
  json.End();
  json.BeginArray("suppressed");
  for (const Suppressions::Used& used : report.suppressed) {
    json.BeginObject();
    json.Add("name", used.name);
    json.Add("findings", used.findings);
    json.Add("count", used.times);
    json.End();
  }
  json.End();
  json.Add("left_out", report.other_objects);
  json.Add("complete", IsComplete(report));
  AddTexts("gaps", report.gaps, &json);
  AddTexts("notes", report.notes, &json);
  AddTexts("unused_suppressions", report.unused_suppressions, &json);
  json.End();
  return json.Take();
}

}  // namespace cuguest::audit
