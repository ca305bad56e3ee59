// SPDX-License-Identifier: Apache-2.0
//
// The end of a program that did what is undefined on a real driver.

#ifndef CUGUEST_LIB_SIM_PANIC_H_
#define CUGUEST_LIB_SIM_PANIC_H_

namespace cuguest_sim {

// Prints "cuguest simulated driver: " and the text and a stack trace to stderr,
// and aborts. For misuse of the simulation itself.
[[noreturn]] void Panic(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The same, naming the entry that this thread is in and the handle it was given:
// "cuguest simulated driver: cuCtxPushCurrent(0x5581...): <text>".
[[noreturn]] void PanicHandle(const void* handle, const char* text);

// A null argument (or a size of nothing) that a real driver writes through.
[[noreturn]] void PanicNull();

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_PANIC_H_
