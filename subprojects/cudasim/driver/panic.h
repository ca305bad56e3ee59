// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The end of a program that did what is undefined on a real driver.

#ifndef CUDASIM_DRIVER_PANIC_H_
#define CUDASIM_DRIVER_PANIC_H_

namespace cudasim::driver {

// Prints "cudasim: " and the text and a stack trace to stderr,
// and aborts. For misuse of the simulation itself.
[[noreturn]] void Panic(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Of the driver only (entry.cc): the same, naming the entry that this thread is in and the handle
// it was given: "cudasim: cuCtxPushCurrent(0x5581...): <text>".
[[noreturn]] void PanicHandle(const void* handle, const char* text);

// `run` is called by the next panic, before it aborts. It must take no lock of the driver's.
void BeforePanicAborts(void (*run)());

// For a thread of the driver's own: its panics run no handler of SIGABRT. One that jumps to where a
// test began, as Boost.Test's does, would jump to another thread's frames.
void RunNoHandlerInPanic();

// A null argument (or a size of nothing) that a real driver writes through.
[[noreturn]] void PanicNull();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_PANIC_H_
