// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of one compilation or link, as the driver takes them.     tier: 3

#ifndef CUGUEST_LIB_OBJECTS_CODE_JIT_H_
#define CUGUEST_LIB_OBJECTS_CODE_JIT_H_

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cuguest/export.h"
#include "cuguest/objects/jit.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Whether the driver can be given `options`: it crashes on some values, and says of others
// only that there is a wrong one.
absl::Status CheckJitOptions(const JitOptions& options);

// kUnimplemented for an option that a driver of this version does not know: the driver says only
// that a value is wrong. By the <cuda.h> of CUDA 11.8 to 13.0.
absl::Status CheckDriverKnows(const JitOptions& options, int driver_version);

// JitCall
//
// The driver is given pointers into this object: to the arrays, which it may read, and to
// the logs and the values, which it may write, for as long as what was made with it exists
// (a link state does, with each input). So it neither copies nor moves, and must outlive that.
//
// Source: cudasim/test/jit_facts_test.cc.
class JitCall {
 public:
  // What a driver of this version does not know, and would refuse, is left out where it
  // changes only the time that the work takes.
  JitCall(const JitOptions& options, int driver_version);
  JitCall(const JitCall&) = delete;
  JitCall& operator=(const JitCall&) = delete;

  [[nodiscard]] unsigned count() const noexcept { return static_cast<unsigned>(names_.size()); }
  [[nodiscard]] CUjit_option* names() noexcept { return names_.data(); }
  [[nodiscard]] void** values() noexcept { return values_.data(); }

  // Whether a log has filled its buffer, so that perhaps more was said. Then it has more room
  // now, and the call is to be made again, with count(), names() and values() as they are
  // then. False in the end, when more room would be absurd.
  bool GrowFullLogs();

  // What the driver wrote. What its cache answers the second time comes without info log and
  // time: then those of the first.
  [[nodiscard]] std::string_view error_log() const noexcept { return error_.Text(); }
  [[nodiscard]] JitReport Report() const;

 private:
  struct Log {
    explicit Log(std::size_t bytes) : size(bytes), text(new char[bytes]) { text[0] = '\0'; }
    [[nodiscard]] std::string_view Text() const noexcept;
    bool GrowIfFull();
    std::size_t size;
    std::unique_ptr<char[]> text;  // not written where the driver has not
  };

  void Add(CUjit_option name, void* value);
  void PointToLogs();

  std::vector<CUjit_option> names_;
  std::vector<void*> values_;
  Log info_;
  Log error_;
  JitReport earlier_;  // before a log grew
  bool asks_for_threads_;
};

// load() with `jit`, again as long as a log was cut; unload() takes back what was loaded with
// one. Returns what load() returned last.
template <typename Load, typename Unload>
CUresult LoadWithLogs(JitCall* jit, const Load& load, const Unload& unload) {
  for (;;) {
    const CUresult code = load();
    if (!jit->GrowFullLogs()) return code;
    if (code == CUDA_SUCCESS) unload();
  }
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_CODE_JIT_H_
