// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short notation for the events of a process, for tests of the analysis.
//
//     cuCtxCreate 0>1 context=1 | host
//     cuCtxSetCurrent 1>2 context=2 | third guest host
//     check 2>2 | guest host
//     t2 thread_end
//
// A line is an event: its kind, unless it is a call; the call's name; the current context before
// and after; fields as logs have them; and after a bar the chain, innermost first. Times count
// lines. "t2" at the beginning: of that thread. "9*" there: nine times.
//
// A frame is the name of an object. Its address follows from its distance from the outermost, so
// that the same beginning of a chain means the same frames; "guest:4" is another place in the code,
// "guest@2" another frame at the same distance. All frames of "fiber" are on another stack.

#ifndef CUGUEST_AUDIT_TEST_SCENARIO_H_
#define CUGUEST_AUDIT_TEST_SCENARIO_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "audit/analysis.h"
#include "audit/log.h"

namespace cuguest_test {

// How most begin: a host with the user's context 1 current.
inline const std::string kHost = R"(
context cuCtxCreate context=1 device=0 | host
cuCtxCreate 0>1 context=1 | host
)";

// The log of a process with these events.
std::string LogOf(std::string_view scenario, bool forked = false);

// Analyses the one process of a log.
class Replayed final : public cuguest::audit::EventSink {
 public:
  explicit Replayed(std::string_view log);

  void OnProcess(const cuguest::audit::Process& process) override;
  void OnObject(std::uint32_t, std::uint32_t index, const cuguest::audit::Object& object) override;
  void OnEvent(std::uint32_t, const cuguest::audit::Event& event) override;

  // "replaced-context cudaSetDevice third>host", with " x3" if it is three times, in their order.
  std::vector<std::string> Summary() const;
  // All of them, as cuguest::audit::Text() has them.
  std::string Text() const;
  cuguest::audit::Analysis& analysis() { return *analysis_; }
  const std::string& error() const { return error_; }

 private:
  std::unique_ptr<cuguest::audit::Analysis> analysis_;
  std::string error_;
};

// The Summary() of a scenario, joined by "; ".
std::string FindingsIn(std::string_view scenario, bool forked = false);

}  // namespace cuguest_test

#endif  // CUGUEST_AUDIT_TEST_SCENARIO_H_
