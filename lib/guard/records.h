// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calling thread's records (cuguest/internal/this_thread.h, Note [Records]): where they are,
// and how another thread says that it has ended a scope of this one. Makes no driver call. tier: 2

#ifndef CUGUEST_LIB_GUARD_RECORDS_H_
#define CUGUEST_LIB_GUARD_RECORDS_H_

#include <cuda.h>

#include "cuguest/internal/this_thread.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

namespace records {

// What scopes nest on: those of one kind do not mind those of the other.
enum class Resource { kContextStack, kCaptureMode };
inline Resource ResourceOf(const Record& record) noexcept {
  return record.kind == Record::Kind::kCaptureMode ? Resource::kCaptureMode
                                                   : Resource::kContextStack;
}
// Whether it must be closed before what is below it.
inline bool IsOpen(const Record& record) noexcept {
  return record.state == Record::State::kLive || record.state == Record::State::kEnded;
}

unsigned Depth() noexcept;
// The record at `slot`, which is below Depth(). Good until the next Add() or Free().
Record& At(unsigned slot) noexcept;
// nullptr unless that one is in use, and has the serial.
Record* Find(unsigned slot, unsigned long long serial) noexcept;

// A new one above all others, at Depth() - 1 then, with a serial and no more; kEntering. nullptr
// without memory for it.
Record* Add() noexcept;
// Ends the use of the one at `slot`, and of its entries.
void Free(unsigned slot) noexcept;
// Gives the places back of those on top that are free: a scope that ends in line looks at the one
// below it alone.
void DropFree() noexcept;

// The place of the topmost open one of `resource`; kNowhere if there is none.
constexpr unsigned kNowhere = ~0U;
unsigned Top(Resource resource) noexcept;

// In a child, the records of this thread and what other threads have ended are the parent's, and
// are forgotten. Called before they are looked at.
void ForgetParents() noexcept;
// Whether the scope was entered in the process that this one was forked from. Needs
// ForgetParents().
bool IsOfParent(unsigned long long serial) noexcept;

// What a scope that has ended leaves behind until it can be closed. Its place is forgotten: the
// file's name may be of a library that is unloaded by then.
void MarkEnded(Record* record) noexcept;

// For a scope whose thread has the kernel's number `thread`, and which is not this one. False
// without memory for it. A thread that has ended has no stack any more: true.
bool TellOwner(int thread, unsigned long long serial) noexcept;
// Marks those that other threads have ended.
void ReadMail() noexcept;

}  // namespace records

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_GUARD_RECORDS_H_
