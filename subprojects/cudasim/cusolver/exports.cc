// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [What cuSOLVER does to contexts]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// As measured on an H100, driver 580.159.04, with cuSOLVER 12:
//
// - With nothing current, a handle that is made or destroyed and all that computes make device 0's
//   primary, and leave it on the caller's stack. The real library then holds three references to
//   it; the simulated one holds one.
// - Nothing compares contexts: work is right wherever its stream is, also when the context
//   of the handle is over. Destroying the handle then crashes.
// - Making a handle allocates; destroying it waits for the context that is current, which
//   invalidates its captures whatever their modes, and yet succeeds.
// - What could not be made leaves a handle, too, which can only be destroyed.
// - No handle is ever checked: null and destroyed ones crash.

#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cusolver/entry_list.h"
#include "driver/handle_table.h"
#include "driver/panic.h"
#include "library/dense.h"
#include "library/exports.h"
#include "runtime/driver.h"

namespace cudasim::cusolver {

CUDASIM_LIBRARY_ROWS(CUDASIM_CUSOLVER_ENTRIES)

namespace {

CUDASIM_LIBRARY_TABLE(CUDASIM_CUSOLVER_ENTRIES)

using Status = cusolverStatus_t;
using cudasim::driver::Panic;
using cudasim::library::AreThere;
using cudasim::library::Conjugate;
using cudasim::library::CopyAs;
using cudasim::library::Dense;
using cudasim::library::Form;
using cudasim::library::Host;
using cudasim::library::Matrix;
using cudasim::library::ToHost;
using cudasim::library::Vector;
using cudasim::runtime::Driver;

// Of a size that shows, and not of what a real handle takes.
constexpr size_t kMemoryBytes = 1 << 16;

struct Handle {
  cudasim::driver::Eternal incarnation;
  cudasim::library::Code code;
  CUstream stream = nullptr;
  cusolverDeterministicMode_t deterministic_mode = CUSOLVER_DETERMINISTIC_RESULTS;
  CUdeviceptr memory = 0;
};

using HandleTable = cudasim::driver::HandleTable<cusolverDnHandle_t, Handle>;
HandleTable& Handles() {
  static auto& table = *new HandleTable(65);
  return table;
}

Handle Find(cusolverDnHandle_t handle) {
  Handle found;
  if (Handles().Find(handle, &found) == cudasim::driver::Handled::kAlive) return found;
  Panic("cuSOLVER was given %p, which is no handle, or one that was destroyed; a real one crashes",
        static_cast<void*>(handle));
}

Status ToStatus(CUresult code) {
  return code == CUDA_SUCCESS ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INTERNAL_ERROR;
}

CUresult Make(Handle* created) {
  CUresult code = cudasim::library::BindContext();
  if (code == CUDA_SUCCESS) code = Driver().cuMemAlloc(&created->memory, kMemoryBytes);
  if (code != CUDA_SUCCESS) return code;
  code = created->code.Load();
  if (code != CUDA_SUCCESS) Driver().cuMemFree(std::exchange(created->memory, 0));
  return code;
}

Status Create(cusolverDnHandle_t* handle) {
  if (handle == nullptr) Panic("cusolverDnCreate: a null argument, at which a real one crashes");
  Handle created;
  const CUresult code = Make(&created);
  Handles().Add(created, handle);
  return code == CUDA_ERROR_NOT_INITIALIZED ? CUSOLVER_STATUS_NOT_INITIALIZED : ToStatus(code);
}

// Nothing that the driver says counts.
Status Destroy(cusolverDnHandle_t handle) {
  const Handle found = Find(handle);
  if (found.code.IsOver()) {
    Panic("cusolverDnDestroy(%p): its context is over; a real one crashes",
          static_cast<void*>(handle));
  }
  if (cudasim::library::BindContext() == CUDA_SUCCESS) {
    Driver().cuCtxSynchronize();
    if (found.memory != 0) Driver().cuMemFree(found.memory);
  }
  Handles().Remove(handle);
  return CUSOLVER_STATUS_SUCCESS;
}

Status SetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  Handle found = Find(handle);
  found.stream = stream;
  Handles().Set(handle, found);
  return CUSOLVER_STATUS_SUCCESS;
}

Status GetStream(cusolverDnHandle_t handle, cudaStream_t* stream) {
  *stream = Find(handle).stream;
  return CUSOLVER_STATUS_SUCCESS;
}

Status SetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t mode) {
  Handle found = Find(handle);
  found.deterministic_mode = mode;
  Handles().Set(handle, found);
  return CUSOLVER_STATUS_SUCCESS;
}

Status GetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t* mode) {
  *mode = Find(handle).deterministic_mode;
  return CUSOLVER_STATUS_SUCCESS;
}

Status GetVersion(int* version) {
  if (version == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  *version = CUSOLVER_VERSION;
  return CUSOLVER_STATUS_SUCCESS;
}

Status GetProperty(libraryPropertyType type, int* value) {
  constexpr int kVersion[] = {CUSOLVER_VER_MAJOR, CUSOLVER_VER_MINOR, CUSOLVER_VER_PATCH};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) {
    return CUSOLVER_STATUS_INVALID_VALUE;
  }
  *value = kVersion[type];
  return CUSOLVER_STATUS_SUCCESS;
}

bool IsFill(cublasFillMode_t fill) {
  return fill == CUBLAS_FILL_MODE_LOWER || fill == CUBLAS_FILL_MODE_UPPER;
}

// The factor L of A = L L^H, in the place of A's lower triangle. The order of the first
// leading minor that is not positive definite, or 0.
template <typename T>
int Factorize(const Matrix<T>& a) {
  for (int j = 0; j < a.rows; ++j) {
    for (int k = 0; k < j; ++k) {
      const T factor = Conjugate(a(j, k));
      for (int i = j; i < a.rows; ++i) a(i, j) -= a(i, k) * factor;
    }
    const auto square = std::real(a(j, j));
    if (!(square > 0)) return j + 1;
    const auto root = std::sqrt(square);
    a(j, j) = root;
    for (int i = j + 1; i < a.rows; ++i) a(i, j) /= root;
  }
  return 0;
}

// What is upper is worked on as its adjoint, which is lower.
Form ToLower(cublasFillMode_t fill) {
  return fill == CUBLAS_FILL_MODE_LOWER ? Form::kPlain : Form::kAdjoint;
}

template <typename T>
struct PotrfOperation {
  cublasFillMode_t fill;
  Matrix<T> a;
  Vector<int> info;

  CUresult Run() const {
    if (!AreThere(a, info)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const Dense<T> lower(a.rows, a.columns);
    CopyAs(ToLower(fill), a, lower.view());
    info[0] = Factorize(lower.view());
    for (int column = 0; column < a.columns; ++column) {
      for (int row = column; row < a.rows; ++row) {
        const T value = lower(row, column);
        (fill == CUBLAS_FILL_MODE_LOWER ? a(row, column) : a(column, row)) =
            fill == CUBLAS_FILL_MODE_LOWER ? value : Conjugate(value);
      }
    }
    return CUDA_SUCCESS;
  }
};

template <typename T>
struct PotrsOperation {
  cublasFillMode_t fill;
  Matrix<const T> a;
  Matrix<T> b;
  Vector<int> info;

  CUresult Run() const {
    if (!AreThere(a, b, info)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const Dense<T> lower(a.rows, a.columns);
    const Dense<T> upper(a.rows, a.columns);
    CopyAs(ToLower(fill), a, lower.view());
    CopyAs(Form::kAdjoint, lower.view(), upper.view());
    cudasim::library::SolveTriangle(lower.view(), true, b);
    cudasim::library::SolveTriangle(upper.view(), false, b);
    info[0] = 0;
    return CUDA_SUCCESS;
  }
};

template <typename Operation>
Status Submit(const Handle& handle, const Operation& operation) {
  return ToStatus(cudasim::library::Submit(handle.code.anywhere, handle.stream, operation));
}

// In elements; the arithmetic of the simulation needs none. Little is checked.
template <typename T>
Status PotrfBufferSize(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, T*, int,
                       int* count) {
  Find(handle);
  if (!IsFill(fill)) return CUSOLVER_STATUS_INVALID_VALUE;
  constexpr int kMore = 32;
  *count = std::clamp(n, 0, std::numeric_limits<int>::max() - kMore) + kMore;
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename T>
Status Potrf(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, T* a, int lda, T*, int,
             int* info) {
  const Handle found = Find(handle);
  if (!IsFill(fill) || n < 0 || lda < std::max(1, n)) return CUSOLVER_STATUS_INVALID_VALUE;
  return Submit(found, PotrfOperation<Host<T>>{fill, {ToHost(a), n, n, lda}, {info, 1, 1}});
}

template <typename T>
Status Potrs(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, int sides, const T* a,
             int lda, T* b, int ldb, int* info) {
  const Handle found = Find(handle);
  const int stride = std::max(1, n);
  const bool is_valid = IsFill(fill) && n >= 0 && sides >= 0 && lda >= stride && ldb >= stride;
  if (!is_valid) return CUSOLVER_STATUS_INVALID_VALUE;
  if (n == 0 || sides == 0) return CUSOLVER_STATUS_SUCCESS;
  return Submit(found, PotrsOperation<Host<T>>{
                           fill, {ToHost(a), n, n, lda}, {ToHost(b), n, sides, ldb}, {info, 1, 1}});
}

}  // namespace

CUDASIM_CUSOLVER_ENTRIES(CUDASIM_LIBRARY_EXPORT)

}  // namespace cudasim::cusolver

namespace cudasim::library {

const EntryTable& Entries() { return cudasim::cusolver::kTable; }

const int kNotSupported = CUSOLVER_STATUS_NOT_SUPPORTED;

int RefusalOf(CUresult code) { return cudasim::cusolver::ToStatus(code); }

}  // namespace cudasim::library
