// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Events in graphs.

#include <chrono>
#include <utility>
#include <vector>

#include "test/busy.h"
#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(graph_event_node_facts)

using namespace cudasim_facts;

namespace {

constexpr auto kRecord = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
constexpr auto kWait = CU_GRAPH_NODE_TYPE_WAIT_EVENT;

CUgraphNodeType TypeOf(CUgraphNode node) {
  auto type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(RAW(cuGraphNodeGetType)(node, &type));
  return type;
}

struct EventGuest : GraphGuest {
  EventGuest() { OK(RAW(cuEventCreate)(&event, 0)); }
  ~EventGuest() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
  }

  CUgraphNode AddRecord(const Nodes& after = {}) {
    CUgraphNode node = nullptr;
    OK(RAW(cuGraphAddEventRecordNode)(&node, graph, after.data(), after.size(), event));
    return node;
  }
  CUgraphNode AddWait(const Nodes& after = {}) {
    CUgraphNode node = nullptr;
    OK(RAW(cuGraphAddEventWaitNode)(&node, graph, after.data(), after.size(), event));
    return node;
  }
  // Of the other context.
  CUevent ForeignEvent() const {
    CUevent foreign = nullptr;
    SetStack({other.get()});
    OK(RAW(cuEventCreate)(&foreign, 0));
    SetStack({context.get()});
    return foreign;
  }
  void Instantiate() {
    if (executable != nullptr) OK(RAW(cuGraphExecDestroy)(executable));
    OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  }
  // Whether a launch behind work that is not done records that event.
  bool Records(CUevent one) const {
    OK(RAW(cuCtxSynchronize)());
    Hold hold(stream);
    OK(RAW(cuGraphLaunch)(executable, stream));
    const CUresult code = RAW(cuEventQuery)(one);
    hold.Release();
    OK(RAW(cuStreamSynchronize)(stream));
    OK(RAW(cuEventQuery)(one));
    return code == CUDA_ERROR_NOT_READY;
  }
  // Whether a launch waits for that event, recorded behind work that is not done.
  bool WaitsForEvent(CUevent one) const {
    OK(RAW(cuCtxSynchronize)());
    Hold hold(second);
    OK(Record(one, second));
    OK(RAW(cuGraphLaunch)(executable, stream));
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    CUresult code = CUDA_ERROR_NOT_READY;
    while (code == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < end) {
      code = RAW(cuStreamQuery)(stream);
    }
    hold.Release();
    OK(RAW(cuStreamSynchronize)(stream));
    return code == CUDA_ERROR_NOT_READY;
  }

  CUevent event = nullptr;
  CUgraphExec executable = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(each_launch_records_an_event) {
  EventGuest guest;
  const CUgraphNode node = guest.AddRecord({guest.AddFill(guest.graph, 0, 1)});
  BOOST_CHECK_EQUAL(TypeOf(node), kRecord);
  CUevent told = nullptr;
  OK(RAW(cuGraphEventRecordNodeGetEvent)(node, &told));
  BOOST_TEST(told == guest.event);
  guest.Instantiate();
  for (int i = 0; i < 2; ++i) BOOST_TEST(guest.Records(guest.event));
}

BOOST_AUTO_TEST_CASE(the_time_between_recorded_nodes_is_told) {
  EventGuest guest;
  const CUevent start = guest.event;
  CUevent end = nullptr;
  OK(RAW(cuEventCreate)(&end, 0));
  const CUgraphNode first = guest.AddRecord();
  guest.event = end;
  guest.AddRecord({first});
  guest.Instantiate();
  float milliseconds = -1;
  IS(RAW(cuEventElapsedTime)(&milliseconds, start, end), INVALID_HANDLE);
  OK(RAW(cuGraphLaunch)(guest.executable, guest.stream));
  OK(RAW(cuEventSynchronize)(end));
  OK(RAW(cuEventElapsedTime)(&milliseconds, start, end));
  BOOST_TEST(milliseconds >= 0);
}

BOOST_AUTO_TEST_CASE(each_launch_waits_for_an_event) {
  EventGuest guest;
  const CUgraphNode node = guest.AddWait();
  BOOST_CHECK_EQUAL(TypeOf(node), kWait);
  CUevent told = nullptr;
  OK(RAW(cuGraphEventWaitNodeGetEvent)(node, &told));
  BOOST_TEST(told == guest.event);
  guest.AddFill(guest.graph, 0, 1, {node});
  guest.Instantiate();
  for (int i = 0; i < 2; ++i) BOOST_TEST(guest.WaitsForEvent(guest.event));
  BOOST_TEST(Is(guest.Launch(guest.executable), {1, 0, 0, 0}));  // with nothing to wait for
}

BOOST_AUTO_TEST_CASE(an_event_of_another_context_is_waited_for) {
  EventGuest guest;
  const CUevent foreign = guest.ForeignEvent();
  guest.event = foreign;
  guest.AddWait();
  guest.Instantiate();
  Hold hold(guest.other_stream);
  OK(guest.Record(foreign, guest.other_stream));
  OK(RAW(cuGraphLaunch)(guest.executable, guest.stream));
  IS(RAW(cuStreamQuery)(guest.stream), NOT_READY);
  hold.Release();
  OK(RAW(cuStreamSynchronize)(guest.stream));
}

BOOST_AUTO_TEST_CASE(a_record_node_gets_another_event) {
  EventGuest guest;
  const CUgraphNode node = guest.AddRecord();
  guest.Instantiate();
  OK(RAW(cuGraphEventRecordNodeSetEvent)(node, guest.never));
  CUevent told = nullptr;
  OK(RAW(cuGraphEventRecordNodeGetEvent)(node, &told));
  BOOST_TEST(told == guest.never);
  BOOST_TEST(guest.Records(guest.event));
  BOOST_TEST(!guest.Records(guest.never));
  guest.Instantiate();
  BOOST_TEST(guest.Records(guest.never));
  BOOST_TEST(!guest.Records(guest.event));
  OK(RAW(cuGraphExecEventRecordNodeSetEvent)(guest.executable, node, guest.event));
  BOOST_TEST(guest.Records(guest.event));
  BOOST_TEST(!guest.Records(guest.never));
  OK(RAW(cuGraphEventRecordNodeGetEvent)(node, &told));
  BOOST_TEST(told == guest.never);
}

BOOST_AUTO_TEST_CASE(a_wait_node_gets_another_event) {
  EventGuest guest;
  const CUgraphNode node = guest.AddWait();
  guest.Instantiate();
  OK(RAW(cuGraphEventWaitNodeSetEvent)(node, guest.never));
  CUevent told = nullptr;
  OK(RAW(cuGraphEventWaitNodeGetEvent)(node, &told));
  BOOST_TEST(told == guest.never);
  BOOST_TEST(guest.WaitsForEvent(guest.event));
  guest.Instantiate();
  BOOST_TEST(guest.WaitsForEvent(guest.never));
  BOOST_TEST(!guest.WaitsForEvent(guest.event));
  OK(RAW(cuGraphExecEventWaitNodeSetEvent)(guest.executable, node, guest.event));
  BOOST_TEST(guest.WaitsForEvent(guest.event));
  BOOST_TEST(!guest.WaitsForEvent(guest.never));
}

BOOST_AUTO_TEST_CASE(what_is_instantiated_keeps_to_events_of_one_context) {
  EventGuest guest;
  const CUevent foreign = guest.ForeignEvent();
  const CUgraphNode record = guest.AddRecord();
  const CUgraphNode wait = guest.AddWait();
  guest.Instantiate();
  IS(RAW(cuGraphExecEventRecordNodeSetEvent)(guest.executable, record, foreign), INVALID_VALUE);
  IS(RAW(cuGraphExecEventWaitNodeSetEvent)(guest.executable, wait, foreign), INVALID_VALUE);
  OK(RAW(cuGraphEventRecordNodeSetEvent)(record, foreign));
  OK(RAW(cuGraphEventWaitNodeSetEvent)(wait, foreign));
}

BOOST_AUTO_TEST_CASE(the_calls_for_nodes_of_any_type_take_event_nodes) {
  EventGuest guest;
  CUgraphNodeParams wait = {};
  wait.type = kWait;
  wait.eventWait.event = guest.recorded;
  CUgraphNodeParams record = {};
  record.type = kRecord;
  record.eventRecord.event = guest.event;
  CUgraphNode first = nullptr;
  CUgraphNode second = nullptr;
  OK(RAW(cuGraphAddNode)(&first, guest.graph, nullptr, nullptr, 0, &wait));
  OK(RAW(cuGraphAddNode)(&second, guest.graph, &first, nullptr, 1, &record));
  guest.Instantiate();
  BOOST_TEST(guest.WaitsForEvent(guest.recorded));
  BOOST_TEST(guest.Records(guest.event));
  wait.eventWait.event = guest.never;
  OK(RAW(cuGraphExecNodeSetParams)(guest.executable, first, &wait));
  BOOST_TEST(guest.WaitsForEvent(guest.never));
  record.eventRecord.event = guest.recorded;
  OK(RAW(cuGraphNodeSetParams)(second, &record));
  CUevent told = nullptr;
  OK(RAW(cuGraphEventRecordNodeGetEvent)(second, &told));
  BOOST_TEST(told == guest.recorded);
}

BOOST_AUTO_TEST_CASE(an_external_record_in_a_capture_is_a_node) {
  EventGuest guest;
  OK(RAW(cuGraphDestroy)(std::exchange(guest.graph, nullptr)));
  OK(Begin(guest.stream));
  OK(guest.Fill(guest.stream));
  OK(RAW(cuEventRecordWithFlags)(guest.event, guest.stream, CU_EVENT_RECORD_EXTERNAL));
  OK(RAW(cuEventQuery)(guest.event));  // it is no captured one
  OK(RAW(cuStreamWaitEvent)(guest.stream, guest.never, CU_EVENT_WAIT_EXTERNAL));
  OK(RAW(cuStreamEndCapture)(guest.stream, &guest.graph));
  Nodes nodes(4);
  size_t count = nodes.size();
  OK(RAW(cuGraphGetNodes)(guest.graph, nodes.data(), &count));
  BOOST_REQUIRE(count == 3u);
  BOOST_CHECK_EQUAL(TypeOf(nodes[1]), kRecord);
  BOOST_CHECK_EQUAL(TypeOf(nodes[2]), kWait);
  CUevent told = nullptr;
  OK(RAW(cuGraphEventRecordNodeGetEvent)(nodes[1], &told));
  BOOST_TEST(told == guest.event);
  OK(RAW(cuGraphEventWaitNodeGetEvent)(nodes[2], &told));
  BOOST_TEST(told == guest.never);
  guest.Instantiate();
  BOOST_TEST(guest.Records(guest.event));
  BOOST_TEST(guest.WaitsForEvent(guest.never));
  OK(RAW(cuGraphExecEventRecordNodeSetEvent)(guest.executable, nodes[1], guest.recorded));
  BOOST_TEST(guest.Records(guest.recorded));
}

BOOST_AUTO_TEST_CASE(a_record_without_flags_is_a_record) {
  const Guest guest;
  const auto record = [&](CUevent event, CUstream stream, unsigned flags) {
    return RAW(cuEventRecordWithFlags)(event, stream, flags);
  };
  {
    Hold hold(guest.stream);
    OK(record(guest.never, guest.stream, CU_EVENT_RECORD_DEFAULT));
    IS(RAW(cuEventQuery)(guest.never), NOT_READY);
  }
  OK(RAW(cuEventSynchronize)(guest.never));
  BOOST_TEST((record(guest.never, guest.stream, CU_EVENT_RECORD_EXTERNAL) != CUDA_SUCCESS));
  IS(record(guest.never, guest.other_stream, CU_EVENT_RECORD_DEFAULT), INVALID_HANDLE);
  OK(Begin(guest.stream));
  OK(record(guest.captured, guest.stream, CU_EVENT_RECORD_DEFAULT));
  OK(guest.Wait(guest.second, guest.captured));  // a branch of the capture
  BOOST_CHECK_EQUAL(StatusOf(guest.second), kActive);
  OK(guest.Record(guest.captured, guest.second));
  OK(guest.Wait(guest.stream, guest.captured));
  OK(End(guest.stream));
}

BOOST_AUTO_TEST_CASE(bad_event_nodes_are_refused) {
  EventGuest guest;
  const CUgraphNode record = guest.AddRecord();
  const CUevent recorded = std::exchange(guest.event, guest.recorded);
  const CUgraphNode wait = guest.AddWait();
  guest.Instantiate();
  CUgraphNode node = nullptr;
  CUevent event = nullptr;
  IS(RAW(cuGraphAddEventRecordNode)(nullptr, guest.graph, nullptr, 0, guest.event), INVALID_VALUE);
  IS(RAW(cuGraphAddEventRecordNode)(&node, nullptr, nullptr, 0, guest.event), INVALID_VALUE);
  IS(RAW(cuGraphAddEventRecordNode)(&node, guest.graph, nullptr, 0, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphAddEventWaitNode)(&node, guest.graph, nullptr, 0, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphEventRecordNodeGetEvent)(wait, &event), INVALID_VALUE);
  IS(RAW(cuGraphEventWaitNodeGetEvent)(record, &event), INVALID_VALUE);
  IS(RAW(cuGraphEventRecordNodeGetEvent)(record, nullptr), INVALID_VALUE);
  IS(RAW(cuGraphEventRecordNodeSetEvent)(wait, guest.never), INVALID_VALUE);
  IS(RAW(cuGraphEventWaitNodeSetEvent)(record, guest.never), INVALID_VALUE);
  IS(RAW(cuGraphExecEventRecordNodeSetEvent)(guest.executable, wait, guest.never), INVALID_VALUE);
  IS(RAW(cuGraphExecEventWaitNodeSetEvent)(guest.executable, record, guest.never), INVALID_VALUE);
  BOOST_TEST(guest.Records(recorded));
  BOOST_TEST(guest.WaitsForEvent(guest.event));
}

BOOST_AUTO_TEST_SUITE_END()
