// SPDX-License-Identifier: Apache-2.0

#ifndef CUDASIM_LIBRARY_BOOK_H_
#define CUDASIM_LIBRARY_BOOK_H_

#include "driver/call_book.h"

namespace cudasim::library {

// This library's; an entry is its row in Entries().
cudasim::driver::CallBook& TheBook();

}  // namespace cudasim::library

#endif  // CUDASIM_LIBRARY_BOOK_H_
