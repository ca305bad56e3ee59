// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults that a storm commits on purpose, after the operation of a given index:
//
//   leak_push     leaves a context on the stack
//   leak_memory   allocates, and never frees: seen at the end
//   lose_capture  waits for every context until that invalidates a capture
//   race          fails where threads run freely, never in lockstep
//   crash         ends the process by a signal

#ifndef CUGUEST_TEST_INTEROP_STORM_PLANT_H_
#define CUGUEST_TEST_INTEROP_STORM_PLANT_H_

#include <string>

#include "test/interop/storm/worker.h"

namespace storm {

bool IsPlant(const std::string& kind);
void Commit(const Plant& plant, Worker& worker);

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_PLANT_H_
