// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/hosts/gemm_guest.h"

#include <cstddef>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/objects/device_view.h"
#include "test/hosts/caller.h"

namespace {

using cuguest::DeviceView;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasLibrary;
using cuguest::runtime::CublasScope;
using cuguest::runtime::ToStatus;
using hosts::Place;
using hosts::PlaceOf;
using hosts::Told;

constexpr size_t kMostRows = 1 << 20;

struct Cublas {
  decltype(&cublasSgemm_v2) sgemm;
  CublasHandles handles;
};

struct State {
  std::mutex mutex;
  std::unique_ptr<Cublas> cublas;
};
// Never destroyed: nothing is called after main.
State& Kept() {
  static State& state = *new State;
  return state;
}

absl::StatusOr<Cublas*> OpenCublas() {
  const std::lock_guard<std::mutex> lock(Kept().mutex);
  if (Kept().cublas == nullptr) {
    const absl::StatusOr<CublasLibrary> library = CublasLibrary::Open();
    if (!library.ok()) return library.status();
    const auto sgemm = library->Find<decltype(&cublasSgemm_v2)>("cublasSgemm_v2");
    if (!sgemm.ok()) return sgemm.status();
    Kept().cublas.reset(new Cublas{*sgemm, CublasHandles(*library)});
  }
  return Kept().cublas.get();
}

absl::Status Multiply(Cublas& cublas, const Place& place, const float* a, const float* b, float* c,
                      int n, DeviceView<std::byte> workspace) {
  const CublasScope scope(cublas.handles, place.stream, workspace);
  if (!scope.ok()) return scope.status();
  const size_t bytes = sizeof(float) * static_cast<size_t>(n) * static_cast<size_t>(n);
  for (const float* operand : {a, b, static_cast<const float*>(c)}) {
    const absl::Status status = scope.CheckOperand(operand, bytes);
    if (!status.ok()) return status;
  }
  const float one = 1.0F;
  const float zero = 0.0F;
  // Rows are cuBLAS's columns: the transposed product.
  return ToStatus(cublas.sgemm(scope.handle(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, n, a, n,
                               &zero, c, n),
                  "multiply");
}

}  // namespace

int gemm_prepare(CUstream stream, const float* values, size_t threads) {
  const absl::StatusOr<Place> place = PlaceOf(stream, values);
  if (!place.ok()) return Told(place.status());
  const absl::StatusOr<Cublas*> cublas = OpenCublas();
  if (!cublas.ok()) return Told(cublas.status());
  return Told((*cublas)->handles.Prepare(place->context.context(), threads));
}

int gemm_multiply(CUstream stream, const float* a, const float* b, float* c, size_t n,
                  void* workspace, size_t workspace_bytes) {
  if (n > kMostRows) return Told(absl::InvalidArgumentError("multiply: too many rows"));
  const auto view =
      DeviceView<std::byte>::Borrow(static_cast<std::byte*>(workspace), workspace_bytes);
  if (!view.ok()) return Told(view.status());
  const absl::StatusOr<Place> place = PlaceOf(stream, c);
  if (!place.ok()) return Told(place.status());
  const absl::StatusOr<Cublas*> cublas = OpenCublas();
  if (!cublas.ok()) return Told(cublas.status());
  return Told(Multiply(**cublas, *place, a, b, c, static_cast<int>(n), *view));
}

const char* gemm_last_error_text(void) { return hosts::last_error; }

int gemm_close(void) {
  const std::lock_guard<std::mutex> lock(Kept().mutex);
  Kept().cublas.reset();
  return 0;
}
