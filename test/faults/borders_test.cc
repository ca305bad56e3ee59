// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk of borders over C++: see borders.h. test/headers/calls_test.py fails where a public
// function has no row.
//
// Which of two errors a function tells is a promise, too: order_of_errors.txt has it.
// CUGUEST_TEST_ORDER=FILE writes it anew.

#include <cstdlib>
#include <fstream>
#include <set>

#include "subprojects/cudasim/test/support/child.h"
#include "test/faults/cc_parameters.h"
#include "test/support/peer.h"

namespace {

using namespace cuguest_faults;

void WalkOver(const char* tables, const std::vector<Row>& rows) {
  BorderWalk walk(tables);
  for (const Row& row : rows) {
    walk.OverBorders(row);
    walk.OnOtherThreads(row);
    walk.InAChild(row);
    walk.InAHostFunction(row);
  }
}

// In this program anew, where it is to end.
void EndWith(const std::string& name, const std::vector<Row>& rows) {
  if (std::getenv("CUGUEST_TEST_AT_EXIT") != nullptr) AtExit(rows);
  const cudasim_test::Ended ended =
      cudasim_test::RunSelf({"--run_test=borders/" + name}, {"CUGUEST_TEST_AT_EXIT=1"});
  BOOST_TEST(ended.code == 0, ended.output);
  BOOST_TEST(ended.output.find("calls at exit, 0 broken") != std::string::npos, ended.output);
}

}  // namespace

CHILD(is_a_peer) { return cuguest_test::ServeAsPeer(); }

BOOST_AUTO_TEST_SUITE(borders, *cuguest_test::OnlySim())

BOOST_AUTO_TEST_CASE(of_the_core) { WalkOver("the core", BordersOfCore()); }
BOOST_AUTO_TEST_CASE(of_the_core_at_exit) { EndWith("of_the_core_at_exit", BordersOfCore()); }

BOOST_AUTO_TEST_CASE(of_memory_and_streams) { WalkOver("memory and streams", BordersOfMemory()); }
BOOST_AUTO_TEST_CASE(of_memory_and_streams_at_exit) {
  EndWith("of_memory_and_streams_at_exit", BordersOfMemory());
}

BOOST_AUTO_TEST_CASE(of_code_graphs_and_arrays) {
  WalkOver("code, graphs and arrays", BordersOfCode());
}
BOOST_AUTO_TEST_CASE(of_code_graphs_and_arrays_at_exit) {
  EndWith("of_code_graphs_and_arrays_at_exit", BordersOfCode());
}

BOOST_AUTO_TEST_CASE(of_the_bridge) { WalkOver("the bridge", BordersOfBridge()); }
BOOST_AUTO_TEST_CASE(of_the_bridge_at_exit) { EndWith("of_the_bridge_at_exit", BordersOfBridge()); }

BOOST_AUTO_TEST_CASE(of_toolkit_libraries) {
  WalkOver("handles of toolkit libraries", BordersOfLibraries());
}
BOOST_AUTO_TEST_CASE(of_toolkit_libraries_at_exit) {
  EndWith("of_toolkit_libraries_at_exit", BordersOfLibraries());
}

BOOST_AUTO_TEST_CASE(tells_the_same_of_two_errors) {
  BorderWalk walk("the order of errors");
  std::set<std::string> found;
  for (const Row& row : Joined({BordersOfCore(), BordersOfMemory(), BordersOfCode(),
                                BordersOfBridge(), BordersOfLibraries()})) {
    for (std::string& line : walk.OrderOf(row)) found.insert(std::move(line));
  }
  if (const char* const name = std::getenv("CUGUEST_TEST_ORDER"); name != nullptr) {
    std::ofstream file(name);
    for (const std::string& line : found) file << line << "\n";
  }
  std::ifstream file(CUGUEST_TEST_ORDER_OF_ERRORS);
  std::set<std::string> kept;
  for (std::string line; std::getline(file, line);) kept.insert(line);
  for (const std::string& line : kept) BOOST_TEST(found.count(line) == 1u, "no longer: " << line);
  for (const std::string& line : found) BOOST_TEST(kept.count(line) == 1u, "now: " << line);
}

BOOST_AUTO_TEST_SUITE_END()
