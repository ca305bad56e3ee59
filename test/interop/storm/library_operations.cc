// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries that are written with the runtime, by handles, plans and communicators that the threads
// share.

#include <nccl.h>

#include <cmath>
#include <thread>
#include <vector>

#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/libraries/nccl.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/runtime/handle.h"
#include "test/interop/storm/operations.h"
#include "test/interop/storm/ranks.h"
#include "test/interop/storm/work.h"

namespace storm {

using cuguest::DeviceView;
using cuguest::StreamRef;
using cuguest::runtime::CublasScope;
using Layout = cuguest::runtime::CufftPlans::Layout;
using cuguest::runtime::CufftScope;
using cuguest::runtime::NcclScope;
using cuguest::runtime::ToRuntime;

namespace {

// Whatever the other threads do meanwhile.
void RequireMine(cublasHandle_t handle, const StreamRef& stream) {
  std::this_thread::yield();
  cudaStream_t found = nullptr;
  Require(cuguest::runtime::ToStatus(cublasGetStream(handle, &found), "cublasGetStream"));
  Require(found == ToRuntime(stream.get()), "the handle is this scope's alone");
}

}  // namespace

// The first call of a routine loads code: the scope's capture mode is for that, too.
void SubmitSaxpy(Worker& worker, float a, const DeviceView<float>& x, const DeviceView<float>& y,
                 const StreamRef& stream) {
  CublasScope blas(worker.world().blas(), stream, DeviceView<std::byte>());
  Require(blas.status());
  Require(blas.CheckOperand(x.data(), x.size_bytes()));
  const auto count = static_cast<int>(x.size());
  Require(cuguest::runtime::ToStatus(
      cublasSaxpy(blas.handle(), count, &a, x.data(), 1, y.data(), 1), "cublasSaxpy"));
  RequireMine(blas.handle(), stream);
  Require(blas.Leave());
}

namespace {

constexpr int kSide = 8;  // of a square matrix that fills a lane's buffer
static_assert(kSide * kSide == Lane::kCount);

// y = x x + y, column by column.
void MultiplyOnHost(const Numbers& x, Numbers* y) {
  for (int column = 0; column < kSide; ++column) {
    for (int row = 0; row < kSide; ++row) {
      for (int k = 0; k < kSide; ++k) {
        (*y)[column * kSide + row] += x[k * kSide + row] * x[column * kSide + k];
      }
    }
  }
}

void Multiply(Worker& worker) {
  Lane& lane = worker.LaneOf(worker.PickPlace());
  const StreamRef& stream = lane.stream.ref();
  const Numbers x = PickNumbers(worker);
  Numbers y = PickNumbers(worker);
  Upload(x, lane.x.view(), stream);
  Upload(y, lane.y.view(), stream);
  {
    const CublasScope blas(worker.world().blas(), stream);
    Require(blas.status());
    const float one = 1;
    Require(cuguest::runtime::ToStatus(
        cublasSgemm(blas.handle(), CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, &one,
                    lane.x.data(), kSide, lane.x.data(), kSide, &one, lane.y.data(), kSide),
        "cublasSgemm"));
    RequireMine(blas.handle(), stream);
  }
  MultiplyOnHost(x, &y);
  RequireContents(lane.y.view(), y, stream);
}

void AddByBlas(Worker& worker) {
  Lane& lane = worker.LaneOf(worker.PickPlace());
  const Numbers x = PickNumbers(worker);
  Numbers y = PickNumbers(worker);
  Upload(x, lane.x.view(), lane.stream.ref());
  Upload(y, lane.y.view(), lane.stream.ref());
  SubmitSaxpy(worker, 2, lane.x.view(), lane.y.view(), lane.stream.ref());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += 2 * x[i];
  RequireContents(lane.y.view(), y, lane.stream.ref());
}

// There and back again, which gives every number as many times as there are.
void Transform(Worker& worker) {
  constexpr int kComplex = Lane::kCount / 2;
  Lane& lane = worker.LaneOf(worker.PickPlace());
  const StreamRef& stream = lane.stream.ref();
  const Numbers x = PickNumbers(worker);
  Upload(x, lane.x.view(), stream);
  {
    const CufftScope fft(worker.world().plans(), Layout::Line(kComplex), stream);
    Require(fft.status());
    auto* const data = reinterpret_cast<cufftComplex*>(lane.x.data());
    for (const int direction : {CUFFT_FORWARD, CUFFT_INVERSE}) {
      Require(cuguest::runtime::ToStatus(cufftExecC2C(fft.handle(), data, data, direction),
                                         "cufftExecC2C"));
    }
  }
  Numbers found(x.size());
  Require(cuguest::DownloadAsync(lane.x.view(), found, stream));
  Require(stream.Synchronize());
  for (std::size_t i = 0; i < x.size(); ++i) {
    Require(std::abs(found[i] - kComplex * x[i]) < 0.1F, "the numbers that were transformed");
  }
}

// Every rank gets the sum of what all have.
void AddOverRanks(Worker& worker) {
  Ranks& ranks = *worker.world().ranks();
  std::vector<Lane*> lanes;
  Numbers sum(Lane::kCount);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    Lane& lane = worker.LaneOf(worker.world().PlaceOfPrimary(rank));
    const Numbers numbers = PickNumbers(worker);
    Upload(numbers, lane.x.view(), lane.stream.ref());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += numbers[i];
    lanes.push_back(&lane);
  }
  const int mine = worker.random.Below(ranks.size());
  ranks.Run(mine, [&](const Ranks::Communicator& comm, int rank) {
    Lane& lane = *lanes[static_cast<std::size_t>(rank)];
    const NcclScope scope(comm, lane.stream.ref());
    if (!scope.ok()) return scope.status();
    return cuguest::runtime::ToStatus(
        ncclAllReduce(lane.x.data(), lane.y.data(), Lane::kCount, ncclFloat, ncclSum, scope.comm(),
                      ToRuntime(lane.stream.get())),
        "ncclAllReduce");
  });
  for (Lane* lane : lanes) RequireContents(lane->y.view(), sum, lane->stream.ref());
}

}  // namespace

Operations LibraryOperations() {
  return {{"cublasSgemm", 8, &Multiply},
          {"cublasSaxpy", 4, &AddByBlas},
          {"cuFFT", 8, &Transform},
          {kCollective, 4, &AddOverRanks}};
}

}  // namespace storm
