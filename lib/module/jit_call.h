// SPDX-License-Identifier: Apache-2.0
//
// The options of one compilation or link, as the driver takes them.     tier: 3

#ifndef CUGUEST_LIB_MODULE_JIT_CALL_H_
#define CUGUEST_LIB_MODULE_JIT_CALL_H_

#include <cuda.h>

#include <string>
#include <string_view>
#include <vector>

#include "cuguest/export.h"
#include "cuguest/jit.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// JitCall
//
// The driver is given pointers into this object: to the arrays, which it may read, and to
// the logs and the values, which it may write, for as long as what was made with it exists
// (a link state, a library that is compiled at its first use). So it neither copies nor moves
// and must outlive that.
class JitCall {
 public:
  // `driver_version`: what an older driver does not know, and would refuse, is left out if it
  // changes nothing but the time it takes.
  JitCall(const JitOptions& options, int driver_version);
  JitCall(const JitCall&) = delete;
  JitCall& operator=(const JitCall&) = delete;

  [[nodiscard]] unsigned count() const noexcept { return static_cast<unsigned>(names_.size()); }
  [[nodiscard]] CUjit_option* names() noexcept { return names_.data(); }
  [[nodiscard]] void** values() noexcept { return values_.data(); }

  // Whether a log has filled its buffer, so that more was said. Then it has more room now, is
  // empty, and the call is to be made again.
  bool GrowFullLogs();

  // What the driver wrote so far.
  [[nodiscard]] std::string_view error_log() const noexcept;
  [[nodiscard]] JitReport Report() const;

 private:
  std::vector<CUjit_option> names_;
  std::vector<void*> values_;
  std::vector<char> info_log_;
  std::vector<char> error_log_;
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_MODULE_JIT_CALL_H_
