// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a status says besides of a code of the driver's: the driver's own reason, or how to have it.
//                                                                                      tier: 0

#ifndef CUGUEST_LIB_STATUS_DRIVER_WORDS_H_
#define CUGUEST_LIB_STATUS_DRIVER_WORDS_H_

#include <cuda.h>

#include <atomic>
#include <string>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The first driver with cuLogsRegisterCallback.
constexpr int kHasLogs = 12090;

// Of a DriverLog (objects/driver_log.h), while one is open; else null: the reason of this thread's
// last call of the driver through cuguest, if that gave `code` and an Error with this `doing` came
// of it, or none for nullptr; empty where there is none. It is told once, of an Error each time.
extern std::atomic<std::string (*)(CUresult code, const char* doing)> g_driver_words;

// To be put behind the text of `code`: empty where there is nothing to say. Calls no driver.
std::string WordsText(CUresult code, const char* doing);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STATUS_DRIVER_WORDS_H_
