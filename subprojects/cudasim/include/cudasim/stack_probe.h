// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -----------------------------------------------------------------------------
// cudasim/stack_probe.h
// -----------------------------------------------------------------------------
/// \file
/// `StackProbe` takes down what a library must leave alone: the calling thread's whole
/// stack of contexts, entry by entry, the flags of the current one, and the primary
/// context of every device. `UndisturbedScope` does it twice and fails a test when the
/// two differ. It works with Boost.Test, GoogleTest or no framework at all, on a real
/// driver and on the simulation; nothing is linked.
///
///   BOOST_AUTO_TEST_CASE(encode_leaves_the_stack_alone) {
///     cudasim::UndisturbedScope scope(
///         [](const std::string& difference) { BOOST_ERROR(difference); });
///     encoder.Encode(frame);
///   }
///
/// With GoogleTest the function is `ADD_FAILURE() << difference`; without one the
/// default prints and aborts.

#ifndef CUDASIM_STACK_PROBE_H_
#define CUDASIM_STACK_PROBE_H_

#include <cuda.h>

#include <functional>
#include <string>
#include <vector>

#include "sim.h"

namespace cudasim {

/// StackProbe
///
/// Stack:   taken off and put back, entry by entry: the driver shows only the top. Net
///          0. An entry whose context is destroyed cannot be pushed again, so the probe
///          stops above it and says so (`cut()`).
/// Threads: value. Take() sees the calling thread's stack only.
/// Cost:    six driver calls for an entry, two for a device. For tests.
/// Errors:  none. Without a driver, before cuInit, or in a forked child everything is
///          empty. It never calls cuInit.
class StackProbe {
 public:
  /// As the compiler declares them, but hidden.
  CUDASIM_HIDE StackProbe() = default;
  CUDASIM_HIDE StackProbe(const StackProbe&) = default;
  CUDASIM_HIDE StackProbe(StackProbe&&) = default;
  CUDASIM_HIDE StackProbe& operator=(const StackProbe&) = default;
  CUDASIM_HIDE StackProbe& operator=(StackProbe&&) = default;
  CUDASIM_HIDE ~StackProbe() = default;

  struct Entry {
    CUcontext context;
    unsigned long long id;  ///< 0 below CUDA 12.0
    CUdevice device = -1;   ///< the context's; -1 if the driver does not tell it
    CUDASIM_HIDE friend bool operator==(const Entry& a, const Entry& b) {
      return a.context == b.context && a.id == b.id;
    }
  };
  struct Primary {
    bool active;
    unsigned flags;
    CUDASIM_HIDE friend bool operator==(const Primary& a, const Primary& b) {
      return a.active == b.active && a.flags == b.flags;
    }
  };

  [[nodiscard]] static StackProbe Take();

  /// Bottom first: back() is the current context.
  [[nodiscard]] CUDASIM_HIDE const std::vector<Entry>& stack() const { return stack_; }
  [[nodiscard]] CUDASIM_HIDE CUcontext current() const {
    return stack_.empty() ? nullptr : stack_.back().context;
  }
  /// One for each device the driver counts; empty before cuInit.
  [[nodiscard]] CUDASIM_HIDE const std::vector<Primary>& primaries() const { return primaries_; }
  /// Of the current context; 0 if there is none.
  [[nodiscard]] CUDASIM_HIDE unsigned flags() const { return flags_; }
  /// Whether a destroyed context ended the walk, with entries below it unseen.
  [[nodiscard]] CUDASIM_HIDE bool cut() const { return cut_; }

  /// What `later` shows otherwise than this one, a line for each difference; empty if
  /// nothing. A driver that was initialised in between is not a difference.
  [[nodiscard]] std::string Difference(const StackProbe& later) const;

  /// The stack on one line, bottom first, with the names that `name` gives the contexts:
  /// "[X] [A]<", or "(empty)". A destroyed context that ended the walk is "[dead]", with
  /// "..." for what lies below it unseen.
  using Name = std::function<std::string(CUcontext)>;
  [[nodiscard]] std::string Draw(const Name& name) const;

 private:
  std::vector<Entry> stack_;
  std::vector<Primary> primaries_;
  unsigned flags_ = 0;
  bool cut_ = false;
};

/// UndisturbedScope
///
/// Probes on construction and destruction, and hands the difference to `fail` if there
/// is one. The stack itself is left as found.
class UndisturbedScope {
 public:
  using Fail = std::function<void(const std::string& difference)>;

  /// Without `fail`: prints the difference to stderr and aborts.
  explicit UndisturbedScope(Fail fail = nullptr, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE());
  UndisturbedScope(const UndisturbedScope&) = delete;
  UndisturbedScope& operator=(const UndisturbedScope&) = delete;
  ~UndisturbedScope();

 private:
  Fail fail_;
  const char* file_;
  int line_;
  StackProbe before_;
};

}  // namespace cudasim

#endif  // CUDASIM_STACK_PROBE_H_
