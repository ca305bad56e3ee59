// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [What NCCL does to contexts]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// As test/nccl_facts_test.cc saw it on two H200 (NCCL 2.28.3, driver 580.159.04), and as issues
// 565, 1736 and 2231 of NVIDIA/nccl describe it:
//
// - A communicator belongs to a device, that of the current context or 0, and works in its primary
//   context. Making one and destroying it is a cudaSetDevice, so that the primary replaces what was
//   current on the caller's thread, or is left where nothing was.
// - So is a collective of several ranks, and afterwards a cudaSetDevice of the device that was
//   current before: where nothing was, the primary context of device 0 is made and left current,
//   whatever the communicator's device.
// - A collective of one rank does nothing in place, or is one copy on the stream.
// - A stream of another context cannot be used by several ranks: ncclUnhandledCudaError, after
//   which the communicator works on. Memory of another context can.
// - Two ranks of a communicator cannot be on one device: ncclInvalidUsage.
//
// A collective is done when the call returns.

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "driver/handle_table.h"
#include "driver/panic.h"
#include "library/exports.h"
#include "library/kernel.h"
#include "nccl/entry_list.h"
#include "nccl/meeting.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/not_modelled.h"

namespace cudasim::nccl {

CUDASIM_LIBRARY_ROWS(CUDASIM_NCCL_ENTRIES)

namespace {

CUDASIM_LIBRARY_TABLE(CUDASIM_NCCL_ENTRIES)

using Status = ncclResult_t;
using Bytes = std::vector<char>;
using cudasim::driver::Panic;
using cudasim::library::MayAccess;
using cudasim::library::Submit;
using cudasim::runtime::Driver;

struct Comm {
  cudasim::driver::Eternal incarnation;
  std::shared_ptr<Meeting> meeting;
  cudasim::library::Code code;  // of the primary context
  int ranks = 0;
  int rank = 0;
  int device = 0;
};

using CommTable = cudasim::driver::HandleTable<ncclComm_t, Comm>;
CommTable& Comms() {
  static auto& table = *new CommTable(66);
  return table;
}

Comm Find(ncclComm_t comm) {
  Comm found;
  if (Comms().Find(comm, &found) == cudasim::driver::Handled::kAlive) return found;
  Panic(
      "NCCL was given %p, which is no communicator, or one that was destroyed; a real one reads "
      "its memory",
      static_cast<void*>(comm));
}

Status ToStatus(CUresult code) {
  return code == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

Status ToStatus(Meeting::Outcome outcome) {
  if (outcome == Meeting::Outcome::kMet) return ncclSuccess;
  return outcome == Meeting::Outcome::kNotMet ? ncclRemoteError : ncclSystemError;
}

// As cudaSetDevice does: the primary replaces what is current.
CUresult SetDevice(int device) {
  CUcontext primary = nullptr;
  const auto held = static_cast<CUresult>(cudasim::runtime::HoldPrimary(device, &primary));
  return held == CUDA_SUCCESS ? Driver().cuCtxSetCurrent(primary) : held;
}

// As cudaGetDevice does, where nobody has called cudaSetDevice.
CUresult GetDevice(int* device) {
  cudasim::runtime::Current current;
  const auto code = static_cast<CUresult>(cudasim::runtime::GetCurrent(&current));
  *device = current.context == nullptr ? 0 : current.device;
  return code;
}

Status GetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

Status GetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return ncclInvalidArgument;
  const std::string name = NewMeeting();
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, name.c_str(), std::min(name.size(), sizeof(id->internal) - 1));
  return ncclSuccess;
}

// Which GPU it is, to tell two ranks on one.
CUresult CardOf(int device, Meeting::Card* card) {
  card->fill('\0');
  return Driver().cuDeviceGetPCIBusId(card->data(), static_cast<int>(card->size()), device);
}

Status CommInitRank(ncclComm_t* made, int ranks, ncclUniqueId id, int rank) {
  if (made == nullptr || ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  Comm comm;
  comm.ranks = ranks;
  comm.rank = rank;
  Meeting::Card card;
  auto code = static_cast<CUresult>(cudasim::runtime::EnsureDriver());
  if (code == CUDA_SUCCESS) code = GetDevice(&comm.device);
  if (code == CUDA_SUCCESS) code = SetDevice(comm.device);
  if (code == CUDA_SUCCESS) code = CardOf(comm.device, &card);
  if (code == CUDA_SUCCESS) code = comm.code.Load();
  if (code != CUDA_SUCCESS) return ToStatus(code);

  comm.meeting = std::make_shared<Meeting>();
  id.internal[sizeof(id.internal) - 1] = '\0';
  const Status status = ToStatus(comm.meeting->Join(id.internal, ranks, rank, card));
  if (status != ncclSuccess) return status;
  std::vector<Meeting::Card> cards = comm.meeting->Cards();
  std::sort(cards.begin(), cards.end());
  if (std::adjacent_find(cards.begin(), cards.end()) != cards.end()) return ncclInvalidUsage;
  return ToStatus(Comms().Add(comm, made));
}

Status CommFinalize(ncclComm_t comm) { return ToStatus(SetDevice(Find(comm).device)); }

Status CommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  const Status status = CommFinalize(comm);
  Comms().Remove(comm);
  return status;
}

Status CommAbort(ncclComm_t comm) { return CommDestroy(comm); }

Status CommCount(ncclComm_t comm, int* count) {
  *count = Find(comm).ranks;
  return ncclSuccess;
}

Status CommCuDevice(ncclComm_t comm, int* device) {
  *device = Find(comm).device;
  return ncclSuccess;
}

Status CommUserRank(ncclComm_t comm, int* rank) {
  *rank = Find(comm).rank;
  return ncclSuccess;
}

Status CommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  Find(comm);
  *error = ncclSuccess;
  return ncclSuccess;
}

// What a stream does: from its device's memory into ours, or back.
struct Transfer {
  void* to;
  const void* from;
  size_t bytes;
  bool is_to_device;

  CUresult Run() const {
    if (!MayAccess(is_to_device ? to : from, bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memcpy(to, from, bytes);
    return CUDA_SUCCESS;
  }
};

CUresult Run(const Comm& comm, CUstream stream, const Transfer& transfer) {
  const CUresult code = Submit(comm.code.here, stream, transfer);
  return code == CUDA_SUCCESS ? Driver().cuStreamSynchronize(stream) : code;
}

template <typename T>
T Combine(ncclRedOp_t op, T a, T b) {
  switch (op) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

// of_all[0] becomes the combination of all.
template <typename T>
void Reduce(ncclRedOp_t op, std::vector<Bytes>* of_all) {
  Bytes& result = of_all->front();
  for (size_t at = 0; at < result.size(); at += sizeof(T)) {
    T combined, value;
    std::memcpy(&combined, result.data() + at, sizeof(T));
    for (size_t rank = 1; rank < of_all->size(); ++rank) {
      std::memcpy(&value, (*of_all)[rank].data() + at, sizeof(T));
      combined = Combine(op, combined, value);
    }
    if (op == ncclAvg) combined = static_cast<T>(combined / static_cast<T>(of_all->size()));
    std::memcpy(result.data() + at, &combined, sizeof(T));
  }
}

struct Type {
  size_t size;
  void (*reduce)(ncclRedOp_t op, std::vector<Bytes>* of_all);
};

Type TypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return {1, Reduce<signed char>};
    case ncclUint8:
      return {1, Reduce<unsigned char>};
    case ncclInt32:
      return {4, Reduce<int>};
    case ncclUint32:
      return {4, Reduce<unsigned>};
    case ncclInt64:
      return {8, Reduce<long long>};
    case ncclUint64:
      return {8, Reduce<unsigned long long>};
    case ncclFloat32:
      return {4, Reduce<float>};
    case ncclFloat64:
      return {8, Reduce<double>};
    default:
      return {0, nullptr};
  }
}

// What a communicator of one rank does: it knows no context.
Status CopyOwn(void* to, const void* from, size_t bytes, CUstream stream) {
  if (to == from) return ncclSuccess;
  return ToStatus(Driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                                         reinterpret_cast<CUdeviceptr>(from), bytes, stream));
}

Status NotModelledIn(const char* call) {
  return static_cast<Status>(cudasim::runtime::NotModelled(call));
}

// `finish` makes of what all ranks have, in of_all[0], what each of them gets.
template <typename Finish>
Status CollectInPrimary(const char* call, const void* from, void* to, size_t bytes,
                        const Comm& comm, CUstream stream, const Finish& finish) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  Driver().cuStreamIsCapturing(stream, &capture);
  // Not modelled: collectives of NCCL in a capture, of more than one rank.
  if (capture != CU_STREAM_CAPTURE_STATUS_NONE) return NotModelledIn(call);
  Bytes mine(bytes);
  const CUresult code = Run(comm, stream, {mine.data(), from, bytes, false});
  if (code != CUDA_SUCCESS) return ToStatus(code);
  std::vector<Bytes> of_all;
  const Status status = ToStatus(comm.meeting->Exchange(mine.data(), bytes, &of_all));
  if (status != ncclSuccess) return status;
  finish(&of_all);
  return ToStatus(Run(comm, stream, {to, of_all.front().data(), bytes, true}));
}

template <typename Finish>
Status Collect(const char* call, const void* from, void* to, size_t bytes, ncclComm_t handle,
               cudaStream_t stream, const Finish& finish) {
  const Comm comm = Find(handle);
  if (comm.ranks == 1) return CopyOwn(to, from, bytes, stream);
  int callers = 0;
  CUresult code = GetDevice(&callers);
  if (code == CUDA_SUCCESS) code = SetDevice(comm.device);
  if (code != CUDA_SUCCESS) return ToStatus(code);
  const Status status = CollectInPrimary(call, from, to, bytes, comm, stream, finish);
  code = SetDevice(callers);
  return status != ncclSuccess ? status : ToStatus(code);
}

Status AllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                 ncclComm_t comm, cudaStream_t stream) {
  if (type < 0 || type >= ncclNumTypes || op < 0 || op >= ncclNumOps) return ncclInvalidArgument;
  const Type element = TypeOf(type);
  // Not modelled: NCCL's types of 8 and 16 bits that are no integers.
  if (element.size == 0) return NotModelledIn("ncclAllReduce");
  return Collect("ncclAllReduce", from, to, count * element.size, comm, stream,
                 [&](std::vector<Bytes>* of_all) { element.reduce(op, of_all); });
}

Status Broadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                 ncclComm_t comm, cudaStream_t stream) {
  if (type < 0 || type >= ncclNumTypes) return ncclInvalidArgument;
  const Comm found = Find(comm);
  if (root < 0 || root >= found.ranks) return ncclInvalidArgument;
  const Type element = TypeOf(type);
  if (element.size == 0) return NotModelledIn("ncclBroadcast");
  // Only the root's is read.
  return Collect("ncclBroadcast", found.rank == root ? from : to, to, count * element.size, comm,
                 stream, [root](std::vector<Bytes>* of_all) {
                   of_all->front() = (*of_all)[static_cast<size_t>(root)];
                 });
}

const char* ErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "a CUDA call failed";
    case ncclSystemError:
      return "a system call failed";
    case ncclInvalidArgument:
      return "an argument is invalid";
    case ncclInvalidUsage:
      return "the call is invalid here";
    case ncclRemoteError:
      return "another rank failed or did not come";
    default:
      return "not an error of the simulation's";
  }
}

}  // namespace

CUDASIM_NCCL_ENTRIES(CUDASIM_LIBRARY_EXPORT)

extern "C" {
__attribute__((visibility("default"))) const char* ncclGetErrorString(ncclResult_t result) {
  return ErrorString(result);
}
__attribute__((visibility("default"))) const char* ncclGetLastError(ncclComm_t) {
  return "the simulation keeps no text";
}
}

}  // namespace cudasim::nccl

namespace cudasim::library {

const EntryTable& Entries() { return cudasim::nccl::kTable; }

const int kNotSupported = ncclInvalidUsage;  // there is no code for it

int RefusalOf(CUresult code) { return cudasim::nccl::ToStatus(code); }

}  // namespace cudasim::library
