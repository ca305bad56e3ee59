// SPDX-License-Identifier: Apache-2.0

#ifndef CUGUEST_LIB_SIM_LIBRARY_BOOK_H_
#define CUGUEST_LIB_SIM_LIBRARY_BOOK_H_

#include "lib/sim/call_book.h"

namespace cuguest_sim_library {

// This library's; an entry is its row in Entries().
cuguest_sim::CallBook& TheBook();

}  // namespace cuguest_sim_library

#endif  // CUGUEST_LIB_SIM_LIBRARY_BOOK_H_
