// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of Python that the calling thread is in.
//
// Note [Python's frames, read and not asked for]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A thread's frames are changed by that thread alone, which is in a call of CUDA's now: they stay
// as they are, whether it holds the interpreter's lock or ctypes has released that for the call. So
// they are read as a debugger reads them. Functions that give them out make objects and count
// references, for which the lock is needed, and to take it may wait for a thread that waits for
// this one. What is called only reads: PyGILState_GetThisThreadState a thread-specific value, and
// PyUnstable_InterpreterFrame_GetLine the frame's table of lines. A thread that Python does not
// know has no state and so no frames.
//
// At its end the interpreter frees the states of threads that go on, and says before that it is not
// initialized any more: from then on nothing is read. A daemon thread that is here in the
// microsecond between the two could read what is freed.
//
// Where the members are, Python 3.13 says itself (_Py_DebugOffsets); of 3.12 they are the same in
// all its releases. Other versions and builds without the lock have none here. A code object is
// read only if its type says that it is one.
//
// The interpreter has a frame of its own for each native call of its loop, which is a local
// variable of that call: its address says which native frame runs the functions up to it.
//
// Threads: any; no locks, no memory.

#ifndef CUGUEST_AUDIT_COLLECT_PYTHON_STACK_H_
#define CUGUEST_AUDIT_COLLECT_PYTHON_STACK_H_

#include <cstddef>
#include <cstdint>

namespace cuguest::audit {

class PythonStack {
 public:
  // A frame of the interpreter's. Only compared.
  using Frame = const std::uint8_t*;

  // Looks for an interpreter in the process, which takes the dynamic linker's lock. False if there
  // is one whose frames are not known: then its version is in `version`.
  static bool Find(char* version, std::size_t size);

  // Of the calling thread; null: it is in no function of Python.
  static Frame Innermost();
  // Null behind the outermost one.
  static Frame CallerOf(Frame frame);
  // Whether it is the one that each native call of the loop has. It has no function.
  static bool IsOfLoop(Frame frame);

  // A function's frame, and where the function is.
  struct Place {
    Frame frame;
    std::uintptr_t instruction;
  };
  static Place PlaceOf(Frame frame);
  // Whether the innermost functions of the calling thread are at these places.
  static bool IsAt(const Place* places, std::size_t count);

  struct Function {
    char file[4096];
    char name[512];  // with the classes around it
    int line;
  };
  // False if there is nothing to be known. Texts that are too long are cut off.
  static bool Describe(Frame frame, Function* function);
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_PYTHON_STACK_H_
