// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the auditor is told of a process: the calls that change CUDA state, each with the state of
// its thread before and after, and with the call chain that made it.
//
// Thread-safe: no; these are values.

#ifndef CUGUEST_AUDIT_EVENT_H_
#define CUGUEST_AUDIT_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cuguest::audit {

// A context of one process, numbered as cuCtxGetId does: a destroyed context's number does not
// come back, though its handle does. 0: none.
using ContextId = std::uint64_t;

// A setting's value where it is not known.
inline constexpr std::uint64_t kUnknownValue = ~std::uint64_t{0};

// A program or shared library, known by its path from when it was first seen, so that one that
// was unloaded keeps its name; or a function of Python, by the file that it is written in.
struct Object {
  std::string path;
  std::string build_id;       // in hexadecimal; empty if it has none
  std::string file = {};      // that has its code, where `path` is no file
  std::string soname = {};    // empty: it has none, or that is not known
  std::size_t package = 0;    // length of the part of `path` that is the outermost Python package
                              // around it; 0: it is in none
  std::string function = {};  // of Python, with the classes around it; empty: native code
};

// A thread as the operating system knows it.
struct OsThread {
  int id = 0;
  std::string name;  // when it was first seen
};

// One frame of a thread's native stack.
struct Frame {
  std::uint32_t object;   // index into the process's objects; 0: code in no object (JIT)
  std::uint64_t offset;   // of the return address in the object; of JIT code the address itself; of
                          // a function of Python the line
  std::uint64_t address;  // canonical frame address: with `object`, the frame's identity
};

// Innermost first. Frames of the driver, the runtime and the auditor itself, with which a backtrace
// begins, are left out: the first frame is that of the function that made the call.
using Chain = std::vector<Frame>;

enum class EventKind : std::uint8_t {
  kCall,     // a call that can disturb, has returned
  kEntered,  // a call that may not return: a destroyed handle is given to it
  kCheck,    // a call that changes nothing, after frames of an earlier chain are gone
  kContext,  // a context was made during the call `name`; `device`, `primary` and `context` are set
  kUsed,     // the first work in `context`: an allocation, a stream, a launch
  kThreadEnd,
  kProcessEnd,   // by exit(); without one the process ended by a signal or _exit
  kInitialized,  // the call `name` initialises CUDA in the process
  kUnloaded,     // at the process's end: the object `value` is not loaded any more
  kMade,   // the call `name` makes objects: `value` is the number of that place in the program
  kStale,  // a call that may not return, or has failed: it is given an object of `context`, which
           // is over; `setting` is its ObjectKind, `value` its handle or address and `old_value`
           // who made it, as kMade has it, or 0
};

// What a context owns, and ends with it.
enum class ObjectKind : std::uint8_t {
  kNone,
  kStream,
  kEvent,
  kMemory,      // of the device
  kHostMemory,  // page-locked
  kModule,
  kFunction,  // of a module
  kArray,
  kTexture,
  kSurface,
};
inline constexpr int kObjectKinds = 10;

// Whether a call of the driver was a CUDA runtime's, which retains and releases primary contexts
// for its callers.
enum class Runtime : std::uint8_t {
  kNone,
  kShared,  // libcudart.so, within a call of it or when it is unloaded
  kOwn,     // one that is linked into the caller's object, within a call of it
};

struct Event {
  EventKind kind = EventKind::kCall;
  std::uint64_t time_ns = 0;  // since the process was first seen
  std::uint32_t thread = 0;   // of the process, from 1 in the order of their first calls
  std::string name;           // as the caller wrote it: "cuCtxPushCurrent", "cudaSetDevice"
  int result = 0;             // CUresult or cudaError_t
  ContextId before = 0;       // current in the thread at the call's entry
  ContextId after = 0;        // and at its return
  // What the call was about, as far as it says: the context that it names (pushed, destroyed),
  // the device, and for settings what is set, to what, and what it was.
  ContextId context = 0;
  int device = -1;
  bool primary = false;
  Runtime runtime = Runtime::kNone;
  int setting = -1;  // a CUlimit, ...
  std::uint64_t value = 0;
  std::uint64_t old_value = 0;         // or kUnknownValue
  std::shared_ptr<const Chain> chain;  // never null for events of a call; may be empty
  std::shared_ptr<const OsThread> os_thread = nullptr;  // null: not known
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_EVENT_H_
