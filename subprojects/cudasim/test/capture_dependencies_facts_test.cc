// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the next node of a capture depends on, as a program sets it: as <cuda.h> describes it; not
// measured.

#include <vector>

#include "test/graphs.h"

BOOST_AUTO_TEST_SUITE(capture_dependencies_facts)

using namespace cudasim_facts;

namespace {

constexpr unsigned kAdd = CU_STREAM_ADD_CAPTURE_DEPENDENCIES;
constexpr unsigned kSet = CU_STREAM_SET_CAPTURE_DEPENDENCIES;

// In the stream's capture, a fill of one byte.
struct DependingGuest : GraphGuest {
  void Capture(size_t place, unsigned char value) const {
    OK(RAW(cuMemsetD8Async)(memory + place, value, 1, stream));
  }
  CUgraph Captured() const {
    auto status = kNone;
    CUgraph captured = nullptr;
    OK(RAW(cuStreamGetCaptureInfo)(stream, &status, nullptr, &captured, nullptr, nullptr, nullptr));
    return captured;
  }
  Nodes Tips() const {
    auto status = kNone;
    const CUgraphNode* nodes = nullptr;
    size_t count = 0;
    OK(RAW(cuStreamGetCaptureInfo)(stream, &status, nullptr, nullptr, &nodes, nullptr, &count));
    return {nodes, nodes + count};
  }
  CUresult Update(Nodes nodes, unsigned flags) const {
    return RAW(cuStreamUpdateCaptureDependencies)(stream, nodes.data(), nullptr, nodes.size(),
                                                  flags);
  }
  std::vector<int> EndAndRun() const {
    CUgraph captured = nullptr;
    OK(RAW(cuStreamEndCapture)(stream, &captured));
    const std::vector<int> bytes = Run(captured);
    OK(RAW(cuGraphDestroy)(captured));
    return bytes;
  }
};

size_t CountDependencies(CUgraphNode node) {
  size_t count = 0;
  OK(RAW(cuGraphNodeGetDependencies)(node, nullptr, nullptr, &count));
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_child_graph_becomes_part_of_a_capture) {
  const DependingGuest guest;
  guest.AddFill(guest.graph, 0, 2);
  OK(Begin(guest.stream));
  guest.Capture(0, 1);
  const CUgraphNode child = guest.AddChild(guest.Captured(), guest.graph, guest.Tips());
  OK(guest.Update({child}, kSet));
  BOOST_TEST((guest.Tips() == Nodes{child}));
  guest.Capture(1, 3);
  BOOST_TEST(CountDependencies(guest.Tips().front()) == 1u);
  BOOST_TEST(Is(guest.EndAndRun(), {2, 3, 0, 0}));
}

BOOST_AUTO_TEST_CASE(nodes_are_added_to_what_there_is) {
  const DependingGuest guest;
  OK(Begin(guest.stream));
  guest.Capture(0, 1);
  const CUgraphNode first = guest.Tips().front();
  const CUgraphNode second = guest.AddFill(guest.Captured(), 1, 2);
  OK(guest.Update({second}, kAdd));
  BOOST_TEST((guest.Tips() == Nodes{first, second}));
  OK(guest.Update({first}, kAdd));  // it is there
  BOOST_TEST(guest.Tips().size() == 2u);
  OK(guest.Update({}, kAdd));
  BOOST_TEST(guest.Tips().size() == 2u);
  guest.Capture(2, 3);
  BOOST_TEST(CountDependencies(guest.Tips().front()) == 2u);
  BOOST_TEST(Is(guest.EndAndRun(), {1, 2, 3, 0}));
}

// The node that nothing reaches any more is no unjoined one.
BOOST_AUTO_TEST_CASE(a_capture_may_forget_its_nodes) {
  const DependingGuest guest;
  OK(Begin(guest.stream));
  guest.Capture(0, 1);
  OK(guest.Update({}, kSet));
  BOOST_TEST(guest.Tips().empty());
  guest.Capture(1, 2);
  BOOST_TEST(CountDependencies(guest.Tips().front()) == 0u);
  BOOST_TEST(Is(guest.EndAndRun(), {1, 2, 0, 0}));
}

BOOST_AUTO_TEST_CASE(what_is_refused_changes_nothing) {
  const DependingGuest guest;
  const CUgraphNode foreign = guest.AddFill(guest.graph, 0, 1);
  IS(guest.Update({}, kSet), ILLEGAL_STATE);
  OK(Begin(guest.stream));
  guest.Capture(0, 1);
  const Nodes tips = guest.Tips();
  IS(guest.Update({foreign}, kSet), INVALID_VALUE);
  IS(guest.Update({tips.front(), foreign}, kAdd), INVALID_VALUE);
  IS(guest.Update(tips, 7), INVALID_VALUE);
  IS(RAW(cuStreamUpdateCaptureDependencies)(guest.stream, nullptr, nullptr, 1, kSet),
     INVALID_VALUE);
  BOOST_TEST((guest.Tips() == tips));
  OK(End(guest.stream));
}

BOOST_AUTO_TEST_SUITE_END()
