// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call has to do with the objects that contexts own, by the letters of its ObjectRule: which
// it is given whose context is over, and which it makes and frees.

#ifndef CUGUEST_AUDIT_COLLECT_CALL_OBJECTS_H_
#define CUGUEST_AUDIT_COLLECT_CALL_OBJECTS_H_

#include "audit/collect/collector.h"
#include "audit/collect/context_table.h"
#include "audit/collect/owned_objects.h"

namespace cuguest::audit {

// The first of each kind of certainty among the arguments; kNone: there is none.
struct DeadArguments {
  OwnedObject certain;  // before the call is made
  OwnedObject suspect;  // if the call says that an argument is none: see MeansArguments()
  bool makes = false;   // whether the call makes an object
};

// Of a call that begins, whose function is given objects.
DeadArguments FindDeadArguments(const ReportedCall& call, const OwnedObjects& owned);

// Whether the result says that an argument is none: CUDA_ERROR_INVALID_VALUE, INVALID_HANDLE or
// CONTEXT_IS_DESTROYED, cudaErrorInvalidHostPointer or InvalidDevicePointer.
bool MeansArguments(int result);

// Of a call that succeeded, whose function is given objects: frees what it frees, and returns what
// it has made, without its maker; of which `begin` is 0 if that is nothing.
OwnedObject TakeObjects(const ReportedCall& call, const ContextTable& contexts,
                        OwnedObjects* owned);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_CALL_OBJECTS_H_
