// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/stream/capture.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "driver/api.h"
#include "driver/call_book.h"
#include "driver/panic.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

// A stream that takes part in a capture.
struct Branch {
  std::uint64_t context_id = 0;
  bool blocking = false;
  std::vector<NodePointer> tips;  // what the next node depends on
  std::vector<CUgraphNode> shown_tips;
  std::vector<CUgraphEdgeData> shown_edges;
};

struct Capture {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t thread = 0;
  std::uint64_t origin = 0;  // stream
  bool lost = false;
  GraphPointer graph;
  std::map<std::uint64_t, Branch> branches;  // by stream
};

using CaptureTable = std::map<std::uint64_t, Capture>;

std::mutex capture_mutex;
std::atomic<size_t> count{0};
std::uint64_t next_capture_id = 1;

// Never destroyed: a program may capture until its very end.
CaptureTable& TheCaptures() {
  static auto& table = *new CaptureTable;
  return table;
}

Branch MakeBranch(const Stream& stream) {
  Branch branch;
  branch.context_id = stream.incarnation.id;
  branch.blocking = (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
  return branch;
}

CaptureTable::iterator FindOf(const Stream& stream) {
  auto& table = TheCaptures();
  return std::find_if(table.begin(), table.end(), [&](const CaptureTable::value_type& entry) {
    return entry.second.branches.count(stream.id) != 0;
  });
}

// The graph stays if it was given away.
void Finish(CaptureTable::iterator it, bool drop_graph) {
  it->second.graph->is_capturing = false;
  if (drop_graph) DropGraph(it->second.graph);
  TheCaptures().erase(it);
  count.fetch_sub(1);
}

template <typename Predicate>
bool HasAny(bool lose, const Predicate& predicate) {
  if (!Captures::Any()) return false;
  const std::lock_guard<std::mutex> lock(capture_mutex);
  bool found = false;
  for (auto& entry : TheCaptures()) {
    if (!predicate(entry.second)) continue;
    found = true;
    if (lose) entry.second.lost = true;
  }
  return found;
}

// The table of cuThreadExchangeStreamCaptureMode's documentation, as measured on an
// H100, driver 580.159.04. A value that is no mode is like THREAD_LOCAL.
//
// | thread's mode | forbidden by captures of this thread | of other threads |
// |---------------|--------------------------------------|------------------|
// | GLOBAL        | GLOBAL, THREAD_LOCAL                 | GLOBAL           |
// | THREAD_LOCAL  | GLOBAL, THREAD_LOCAL                 | none             |
// | RELAXED       | none                                 | none             |
bool ForbidsUnsafeCalls(const Capture& capture) {
  const CUstreamCaptureMode mine = ThisThreadsCaptureMode();
  if (mine == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == ThisThread()) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mine == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

void AddTip(const NodePointer& node, std::vector<NodePointer>* tips) {
  if (std::find(tips->begin(), tips->end(), node) == tips->end()) tips->push_back(node);
}

void AddAncestors(const NodePointer& node, std::set<const Node*>* ancestors) {
  if (!ancestors->insert(node.get()).second) return;
  for (const NodePointer& dependency : node->dependencies) AddAncestors(dependency, ancestors);
}

// Whether the stream it began in has waited for all that the others did.
bool IsJoined(const Capture& capture) {
  std::set<const Node*> joined;
  for (const NodePointer& tip : capture.branches.at(capture.origin).tips) {
    AddAncestors(tip, &joined);
  }
  for (const auto& branch : capture.branches) {
    for (const NodePointer& tip : branch.second.tips) {
      if (joined.count(tip.get()) == 0) return false;
    }
  }
  return true;
}

// What cuStreamEndCapture in the stream it began in says of it.
CUresult Outcome(const Capture& capture) {
  if (capture.lost) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!IsJoined(capture)) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  const bool any_thread = capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED;
  return any_thread || capture.thread == ThisThread() ? CUDA_SUCCESS
                                                      : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

bool IsMode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

bool IsPlain(const CUgraphEdgeData& edge) {
  return edge.from_port == 0 && edge.to_port == 0 && edge.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
}

template <typename Value>
void Put(Value* out, const Value& value) {
  if (out != nullptr) *out = value;
}

}  // namespace

CUstreamCaptureMode& ThisThreadsCaptureMode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

std::unique_lock<std::mutex> Captures::Lock() {
  return std::unique_lock<std::mutex>(capture_mutex);
}

bool Captures::Any() { return count.load(std::memory_order_acquire) != 0; }

CUstreamCaptureStatus Captures::StatusOf(const Stream& stream) {
  if (!Any()) return CU_STREAM_CAPTURE_STATUS_NONE;
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto it = FindOf(stream);
  if (it == TheCaptures().end()) return CU_STREAM_CAPTURE_STATUS_NONE;
  return it->second.lost ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool Captures::FindInfo(const Stream& stream, CaptureInfo* info) {
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto it = FindOf(stream);
  if (it == TheCaptures().end() || it->second.lost) return false;
  Branch& branch = it->second.branches.at(stream.id);
  branch.shown_tips.clear();
  for (const NodePointer& tip : branch.tips) branch.shown_tips.push_back(tip->handle);
  branch.shown_edges.assign(branch.tips.size(), CUgraphEdgeData{});
  *info = {it->first, it->second.graph->handle, branch.shown_tips.data(), branch.shown_edges.data(),
           branch.tips.size()};
  return true;
}

CUresult Captures::Depend(const Stream& stream, const CUgraphNode* nodes, size_t count,
                          bool replace) {
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto it = FindOf(stream);
  if (it == TheCaptures().end()) return CUDA_ERROR_ILLEGAL_STATE;
  if (it->second.lost) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<NodePointer>& tips = it->second.branches.at(stream.id).tips;
  std::vector<NodePointer> next = replace ? std::vector<NodePointer>{} : tips;
  for (size_t i = 0; i < count; ++i) {
    NodePointer node;
    const CUresult code = FindNodeOf(*it->second.graph, nodes[i], &node);
    if (code != CUDA_SUCCESS) return code;
    AddTip(node, &next);
  }
  tips = std::move(next);
  return CUDA_SUCCESS;
}

CUresult Captures::Begin(const Stream& stream, CUstreamCaptureMode mode) {
  const std::lock_guard<std::mutex> lock(capture_mutex);
  if (FindOf(stream) != TheCaptures().end()) return CUDA_ERROR_ILLEGAL_STATE;
  if (!stream.incarnation.IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  Capture capture;
  capture.mode = mode;
  capture.thread = ThisThread();
  capture.origin = stream.id;
  capture.graph = MakeGraph();
  capture.graph->is_capturing = true;
  capture.branches.emplace(stream.id, MakeBranch(stream));
  TheCaptures().emplace(next_capture_id++, std::move(capture));
  count.fetch_add(1);
  return CUDA_SUCCESS;
}

CUresult Captures::End(const Stream& stream, CUgraph* graph) {
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto it = FindOf(stream);
  if (it == TheCaptures().end()) return CUDA_ERROR_ILLEGAL_STATE;
  if (it->second.origin != stream.id) {
    it->second.lost = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  const CUresult outcome = Outcome(it->second);
  if (outcome == CUDA_SUCCESS && graph != nullptr) *graph = it->second.graph->handle;
  Finish(it, /*drop_graph=*/outcome != CUDA_SUCCESS || graph == nullptr);
  return outcome;
}

bool Captures::HasForbiddingUnsafeCalls(bool lose) { return HasAny(lose, ForbidsUnsafeCalls); }

bool Captures::HasInContext(std::uint64_t context_id, bool lose) {
  return HasAny(lose, [=](const Capture& capture) {
    const auto& branches = capture.branches;
    return std::any_of(branches.begin(), branches.end(),
                       [=](const auto& branch) { return branch.second.context_id == context_id; });
  });
}

bool Captures::HasInBlockingStreamOf(std::uint64_t context_id, bool lose) {
  return HasAny(lose, [=](const Capture& capture) {
    const auto& branches = capture.branches;
    return std::any_of(branches.begin(), branches.end(), [=](const auto& branch) {
      return branch.second.blocking && branch.second.context_id == context_id;
    });
  });
}

void Captures::Lose(const Stream& stream) {
  HasAny(true, [&](const Capture& capture) { return capture.branches.count(stream.id) != 0; });
}

bool Captures::Record(const Stream& stream, const Work& work, CUresult* code) {
  if (!Any()) return false;
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto it = FindOf(stream);
  if (it == TheCaptures().end()) return false;
  if (it->second.lost) {
    *code = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return true;
  }
  auto& tips = it->second.branches.at(stream.id).tips;
  tips = {AddNode(it->second.graph, work, tips)};
  *code = CUDA_SUCCESS;
  return true;
}

CapturedPoint Captures::PointOf(const Stream& stream) {
  if (!Any()) return {};
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto it = FindOf(stream);
  if (it == TheCaptures().end()) return {};
  return {it->first, it->second.branches.at(stream.id).tips};
}

CUresult Captures::CheckEvent(const CapturedPoint& point, bool lose) {
  if (point.capture_id == 0) return CUDA_SUCCESS;
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto it = TheCaptures().find(point.capture_id);
  if (it == TheCaptures().end() || it->second.lost) return CUDA_ERROR_INVALID_VALUE;
  if (lose) it->second.lost = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult Captures::Join(const Stream& stream, const CapturedPoint& point) {
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto from = TheCaptures().find(point.capture_id);
  const auto to = FindOf(stream);
  const bool captures = to != TheCaptures().end();
  if (from == TheCaptures().end() || from->second.lost) {
    if (captures) to->second.lost = true;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream.is_legacy) {
    from->second.lost = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (captures && to != from) {
    from->second.lost = to->second.lost = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  auto& tips = from->second.branches.emplace(stream.id, MakeBranch(stream)).first->second.tips;
  for (const NodePointer& node : point.nodes) AddTip(node, &tips);
  return CUDA_SUCCESS;
}

void Captures::Drop(const Stream& stream) {
  if (!Any()) return;
  const std::lock_guard<std::mutex> lock(capture_mutex);
  const auto it = FindOf(stream);
  if (it != TheCaptures().end() && it->second.origin == stream.id) Finish(it, /*drop_graph=*/true);
}

void Captures::DropIncarnation(std::uint64_t context_id, bool also_created) {
  if (!Any()) return;
  const std::lock_guard<std::mutex> lock(capture_mutex);
  for (auto it = TheCaptures().begin(); it != TheCaptures().end();) {
    const auto here = it++;
    const Capture& capture = here->second;
    const bool gone = capture.branches.at(capture.origin).context_id == context_id &&
                      (also_created || IsSpecialStream(capture.origin));
    if (gone) Finish(here, /*drop_graph=*/true);
  }
}

namespace {

TaskPointer DoOrQueue(CUstream handle, const Stream& stream, const Work& work,
                      const TaskPointer& after) {
  const TaskPointer awaited = work.awaits ? work.awaits() : nullptr;
  const bool is_host = work.type == CU_GRAPH_NODE_TYPE_HOST;
  if (Schedule::IsIdle() && !is_host) {
    work.run(handle);
    return nullptr;
  }
  Job job;
  job.incarnation = work.incarnation.context != nullptr ? work.incarnation : stream.incarnation;
  job.run = [run = work.run, handle] { run(handle); };
  job.is_host = is_host;
  return Schedule::Submit(stream, job, {after, awaited});
}

}  // namespace

TaskPointer SubmitUncaptured(CUstream handle, const Stream& stream, const Work& work,
                             const TaskPointer& after) {
  const TaskPointer task = DoOrQueue(handle, stream, work, after);
  if (work.submitted) work.submitted(task);
  return task;
}

CUresult Submit(CUstream handle, const Stream& stream, const Work& work, TaskPointer* task) {
  CUresult code = CUDA_SUCCESS;
  if (Captures::Record(stream, work, &code)) return code;
  if (!work.is_valid()) return CUDA_ERROR_INVALID_VALUE;
  const TaskPointer queued = SubmitUncaptured(handle, stream, work, /*after=*/nullptr);
  if (task != nullptr) *task = queued;
  return CUDA_SUCCESS;
}

// The entries. What a capture forbids is in capture_rules.cc.

// State of the thread alone: it needs no context and makes none. A value that is no mode is taken
// and given back all the same.
CUresult ThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr) PanicNull();
  std::swap(ThisThreadsCaptureMode(), *mode);
  return CUDA_SUCCESS;
}

// The thread's own mode plays no part.
CUresult StreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  if (!IsMode(mode)) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  return stream.is_legacy ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : Captures::Begin(stream, mode);
}

// From before there were modes.
CUresult StreamBeginCaptureFirst(CUstream handle) {
  return StreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_RELAXED);
}

// The graph is null unless this succeeds. Without a place for it, it is destroyed.
CUresult StreamEndCapture(CUstream handle, CUgraph* graph) {
  if (graph != nullptr) *graph = nullptr;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  return code != CUDA_SUCCESS ? code : Captures::End(stream, graph);
}

CUresult StreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return StreamGetCaptureInfo(handle, status, nullptr);
}

CUresult StreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return StreamGetCaptureInfoGraph(handle, status, id, nullptr, nullptr, nullptr);
}

CUresult StreamGetCaptureInfoGraph(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return StreamGetCaptureInfoEdges(handle, status, id, graph, dependencies, nullptr, count);
}

// All but the status is written only for an active capture.
CUresult StreamGetCaptureInfoEdges(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  *status = Captures::StatusOf(stream);
  CaptureInfo info;
  if (!Captures::FindInfo(stream, &info)) return CUDA_SUCCESS;
  Put(id, cuuint64_t{info.id});
  Put(graph, info.graph);
  if (edges != nullptr && dependencies == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Put(dependencies, info.dependencies);
  Put(edges, info.edges);
  Put(count, info.count);
  return CUDA_SUCCESS;
}

CUresult StreamUpdateCaptureDependenciesFirst(CUstream handle, CUgraphNode* nodes, size_t count,
                                              unsigned flags) {
  return StreamUpdateCaptureDependencies(handle, nodes, nullptr, count, flags);
}

// Edges with data are not modelled. Source: test/capture_dependencies_facts_test.cc.
CUresult StreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* nodes,
                                         const CUgraphEdgeData* edges, size_t count,
                                         unsigned flags) {
  const bool replaces = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES;
  if ((!replaces && flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES) ||
      (nodes == nullptr && count != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (edges != nullptr && !std::all_of(edges, edges + count, IsPlain)) return NotModelled();
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  return code != CUDA_SUCCESS ? code : Captures::Depend(stream, nodes, count, replaces);
}

}  // namespace cudasim::driver
