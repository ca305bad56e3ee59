// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries that are loaded at run time.                                              tier: 0

#ifndef CUGUEST_LIB_CORE_LIBRARY_H_
#define CUGUEST_LIB_CORE_LIBRARY_H_

#include <cstddef>
#include <cstdint>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

#ifdef _WIN32
constexpr char kDriverFile[] = "nvcuda.dll";
#else
constexpr char kDriverFile[] = "libcuda.so.1";
#endif

// Loads the library at `path` for as long as the process lives, or returns nullptr and writes the
// loader's words to `why`, of `size` bytes. On Windows a name without a directory is looked for in
// the system's alone, where the driver is, and not where the program or somebody's PATH has
// another.
void* LoadForGood(const char* path, char* why, std::size_t size) noexcept;

// Whether these words of LoadForGood() say that the process has no memory or no file descriptor
// left, so that it may go well later. On Windows that is not known.
bool MayPass(const char* why) noexcept;

// A number other than 0 that changes when this process has loaded a library, and eight times a
// second for files that appear: while it stays, LoadForGood() need not be asked again for what it
// did not find. It costs a thousandth of that. Not in a forked child: its parent may have been
// loading a library on another thread.
std::uint64_t LoaderMoment() noexcept;

// The library of that name if the process has it, until it is given back; else nullptr.
void* BorrowLoaded(const char* path) noexcept;
void GiveBack(void* library) noexcept;

void* FindSymbol(void* library, const char* name) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_LIBRARY_H_
