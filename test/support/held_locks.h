// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which locks the library holds: held_locks.cc, where it is linked into a program, takes the place
// of the mutexes, of call_once, of the guards of function-local statics, of malloc() and of
// dlopen(). An allocation, or a library that is loaded, under a lock that libcuguest.so took ends
// the program. Nothing is seen where the library is linked statically, or with a sanitizer.

#ifndef CUGUEST_TEST_SUPPORT_HELD_LOCKS_H_
#define CUGUEST_TEST_SUPPORT_HELD_LOCKS_H_

namespace cuguest_test {

// Whether locks are seen in this program.
bool SeesLocks();

// How many locks the library has taken so far.
unsigned long LocksTaken();

// Called on each thread when the library has taken a lock, which it holds then: it must not
// allocate. nullptr removes it.
void OnLockTaken(void (*hook)());

// Ends the program with a message if the library holds a lock on this thread.
void RequireNoLock(const char* during);

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_HELD_LOCKS_H_
