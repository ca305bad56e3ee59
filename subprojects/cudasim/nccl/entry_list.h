// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the simulated NCCL that returns a code, once: see library/exports.h. There are
// communicators of one rank per process or thread, and two collectives; there are no groups.
// What NVIDIA's exports and is not here (names.inc) is not modelled: see runtime/stubs.cc.

#ifndef CUDASIM_NCCL_ENTRY_LIST_H_
#define CUDASIM_NCCL_ENTRY_LIST_H_

// clang-format off
#define CUDASIM_NCCL_ENTRIES(X)                                                                    \
  X(ncclGetVersion, GetVersion, kNothing, (int* version), (version))                               \
  X(ncclGetUniqueId, GetUniqueId, kNothing, (ncclUniqueId* id), (id))                              \
  X(ncclCommInitRank, CommInitRank, kNothing, (ncclComm_t* made, int ranks, ncclUniqueId id,       \
    int rank), (made, ranks, id, rank))                                                            \
  X(ncclCommFinalize, CommFinalize, kNothing, (ncclComm_t comm), (comm))                           \
  X(ncclCommDestroy, CommDestroy, kNothing, (ncclComm_t comm), (comm))                             \
  X(ncclCommAbort, CommAbort, kNothing, (ncclComm_t comm), (comm))                                 \
  X(ncclCommCount, CommCount, kNothing, (const ncclComm_t comm, int* count), (comm, count))        \
  X(ncclCommCuDevice, CommCuDevice, kNothing, (const ncclComm_t comm, int* device),                \
    (comm, device))                                                                                \
  X(ncclCommUserRank, CommUserRank, kNothing, (const ncclComm_t comm, int* rank), (comm, rank))    \
  X(ncclCommGetAsyncError, CommGetAsyncError, kNothing, (ncclComm_t comm, ncclResult_t* error),    \
    (comm, error))                                                                                 \
  X(ncclAllReduce, AllReduce, kNothing, (const void* from, void* to, size_t count,                 \
    ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),                    \
    (from, to, count, type, op, comm, stream))                                                     \
  X(ncclBroadcast, Broadcast, kNothing, (const void* from, void* to, size_t count,                 \
    ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream),                          \
    (from, to, count, type, root, comm, stream))
// clang-format on

#endif  // CUDASIM_NCCL_ENTRY_LIST_H_
