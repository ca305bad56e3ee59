// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Note [What cuFFT does to contexts]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// As measured on an H100, driver 580.159.04, with cuFFT 12.0:
//
// - With nothing current, making a plan makes device 0's primary, and leaves the stack
//   empty; destroying one leaves the primary on it. A transform binds nothing.
// - A plan's code is of the context in which the plan was made: on a stream of another one
//   (stream 0 is the current one's) it fails, and does nothing. The same when the context
//   is over; destroying the plan then frees memory of the host's twice.
// - Making a plan allocates, unless one of its layout is there, and destroying one frees: captures
//   are invalidated where these invalidate them, and destroying succeeds all the same.
// - A graph that has a plan's transform needs the plan.

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "cufft/entry_list.h"
#include "cufft/plan.h"
#include "driver/panic.h"
#include "library/exports.h"
#include "runtime/driver.h"

namespace cudasim::cufft {

CUDASIM_LIBRARY_ROWS(CUDASIM_CUFFT_ENTRIES)

namespace {

using cudasim::runtime::Driver;

CUDASIM_LIBRARY_TABLE(CUDASIM_CUFFT_ENTRIES)

struct PlainLayout {
  int rank;
  int size[3];
  cufftType type;
  int batch;
};

PlainLayout Plain(std::initializer_list<int> size, cufftType type, int batch = 1) {
  PlainLayout layout = {static_cast<int>(size.size()), {}, type, batch};
  std::copy(size.begin(), size.end(), layout.size);
  return layout;
}

Status MakeLayout(const PlainLayout& from, Layout* layout) {
  return MakeLayout(
      Description<int>{from.rank, from.size, nullptr, 1, 0, nullptr, 1, 0, from.type, from.batch},
      layout);
}

bool NothingIsCurrent() {
  CUcontext current = nullptr;
  return Driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == nullptr;
}

// Loses captures as making and destroying a plan does.
void TakeAndFreeMemory() {
  CUdeviceptr address = 0;
  if (Driver().cuMemAlloc(&address, 1) == CUDA_SUCCESS) Driver().cuMemFree(address);
}

CUresult TakeArea(Plan* plan) {
  const size_t bytes = plan->layout.WorkBytes();
  if (!plan->allocates || bytes == 0) return CUDA_SUCCESS;
  CUdeviceptr area = 0;
  const CUresult code = Driver().cuMemAlloc(&area, bytes);
  if (code != CUDA_SUCCESS) return code;
  plan->area = reinterpret_cast<void*>(area);
  plan->owns_area = true;
  return CUDA_SUCCESS;
}

void FreeArea(Plan* plan) {
  if (plan->owns_area) Driver().cuMemFree(reinterpret_cast<CUdeviceptr>(plan->area));
  plan->area = nullptr;
  plan->owns_area = false;
}

CUresult MakeInCurrent(const Layout& layout, Plan* plan) {
  CUcontext current = nullptr;
  CUresult code = Driver().cuCtxGetCurrent(&current);
  if (code == CUDA_SUCCESS) code = Driver().cuCtxGetId(current, &plan->context_id);
  if (code == CUDA_SUCCESS) code = plan->code.Load();
  if (code == CUDA_SUCCESS) code = TakeTables(plan->context_id, layout, &plan->tables);
  if (code != CUDA_SUCCESS) return code;
  plan->layout = layout;
  code = TakeArea(plan);
  if (code != CUDA_SUCCESS) ReturnTables(plan->context_id, layout);
  plan->is_made = code == CUDA_SUCCESS;
  return code;
}

// In the primary of device 0, if nothing is current.
CUresult MakeAnywhere(const Layout& layout, Plan* plan) {
  if (cudasim::runtime::EnsureDriver() != cudaSuccess) return CUDA_ERROR_NOT_INITIALIZED;
  if (!NothingIsCurrent()) return MakeInCurrent(layout, plan);
  CUresult code = cudasim::library::BindContext();
  if (code != CUDA_SUCCESS) return code;
  code = MakeInCurrent(layout, plan);
  Driver().cuCtxSetCurrent(nullptr);
  return code;
}

Status Make(cufftHandle number, const Layout& layout) {
  Plan plan;
  if (!Plans::Find(number, &plan) || plan.is_made) return CUFFT_INVALID_PLAN;
  if (MakeAnywhere(layout, &plan) != CUDA_SUCCESS) return CUFFT_INTERNAL_ERROR;
  Plans::Set(number, plan);
  return CUFFT_SUCCESS;
}

template <typename From>
Status MakePlan(cufftHandle number, const From& from, size_t* bytes) {
  Layout layout;
  if (bytes == nullptr) return CUFFT_INVALID_VALUE;
  Status status = MakeLayout(from, &layout);
  if (status == CUFFT_SUCCESS) status = Make(number, layout);
  if (status == CUFFT_SUCCESS) *bytes = layout.WorkBytes();
  return status;
}

Status Create(cufftHandle* number) {
  if (number == nullptr) return CUFFT_INVALID_VALUE;
  *number = Plans::Add();
  return CUFFT_SUCCESS;
}

// 0 for one that cannot be made.
template <typename From>
Status PlanAtOnce(cufftHandle* number, const From& from) {
  if (number == nullptr) return CUFFT_INVALID_VALUE;
  size_t bytes = 0;
  *number = 0;
  const cufftHandle added = Plans::Add();
  const Status status = MakePlan(added, from, &bytes);
  Plan plan;
  if (status != CUFFT_SUCCESS) {
    Plans::Remove(added, &plan);
  } else {
    *number = added;
  }
  return status;
}

// What the driver says does not count.
Status Destroy(cufftHandle number) {
  if (number == CUFFT_PLAN_NULL) return CUFFT_SUCCESS;
  Plan plan;
  if (!Plans::Remove(number, &plan)) return CUFFT_INVALID_PLAN;
  if (!plan.is_made) return CUFFT_SUCCESS;
  if (plan.code.IsOver()) {
    cudasim::driver::Panic(
        "cufftDestroy(%d): the plan is of a context that is over; a real one frees memory twice",
        number);
  }
  if (NothingIsCurrent()) cudasim::library::BindContext();
  TakeAndFreeMemory();
  FreeArea(&plan);
  ReturnTables(plan.context_id, plan.layout);
  return CUFFT_SUCCESS;
}

template <typename From>
Status SizeOf(const From& from, size_t* bytes) {
  Layout layout;
  if (bytes == nullptr) return CUFFT_INVALID_VALUE;
  const Status status = MakeLayout(from, &layout);
  if (status == CUFFT_SUCCESS) *bytes = layout.WorkBytes();
  return status;
}

// A real library makes a plan to find out.
template <typename From>
Status Estimate(const From& from, size_t* bytes) {
  const Status status = SizeOf(from, bytes);
  if (status == CUFFT_SUCCESS && cudasim::runtime::EnsureDriver() == cudaSuccess) {
    TakeAndFreeMemory();
  }
  return status;
}

template <typename From>
Status GetSizeOf(cufftHandle number, const From& from, size_t* bytes) {
  Plan plan;
  return Plans::Find(number, &plan) ? SizeOf(from, bytes) : CUFFT_INVALID_PLAN;
}

Status GetSize(cufftHandle number, size_t* bytes) {
  Plan plan;
  if (!Plans::Find(number, &plan) || !plan.is_made) return CUFFT_INVALID_PLAN;
  if (bytes == nullptr) return CUFFT_INVALID_VALUE;
  *bytes = plan.layout.WorkBytes();
  return CUFFT_SUCCESS;
}

// `change` is given the plan.
template <typename Change>
Status Set(cufftHandle number, const Change& change) {
  Plan plan;
  if (!Plans::Find(number, &plan)) return CUFFT_INVALID_PLAN;
  change(&plan);
  Plans::Set(number, plan);
  return CUFFT_SUCCESS;
}

Status SetAutoAllocation(cufftHandle number, int allocates) {
  return Set(number, [&](auto* plan) { plan->allocates = allocates != 0; });
}

Status SetWorkArea(cufftHandle number, void* area) {
  return Set(number, [&](auto* plan) {
    FreeArea(plan);
    plan->area = area;
  });
}

Status SetStream(cufftHandle number, cudaStream_t stream) {
  return Set(number, [&](auto* plan) { plan->stream = stream; });
}

bool IsAligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 8 == 0; }

// Nothing checks that the plan is of the call's type.
Status Exec(cufftHandle number, const void* input, void* output, int direction) {
  Plan plan;
  if (!Plans::Find(number, &plan) || !plan.is_made) return CUFFT_INVALID_PLAN;
  const bool has_direction = direction == CUFFT_FORWARD || direction == CUFFT_INVERSE;
  if (!has_direction || !IsAligned(input) || !IsAligned(output)) return CUFFT_INVALID_VALUE;
  const bool works_in_output = input != output && output == plan.area;
  if (works_in_output || (input == nullptr && output == nullptr)) return CUFFT_EXEC_FAILED;
  const Transform transform = {input == output ? plan.layout.InPlace() : plan.layout,
                               direction == CUFFT_INVERSE,
                               input,
                               output,
                               reinterpret_cast<const void*>(plan.tables),
                               plan.area,
                               plan.layout.WorkBytes()};
  const CUresult code = cudasim::library::Submit(plan.code.here, plan.stream, transform);
  return code == CUDA_SUCCESS ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

Status GetVersion(int* version) {
  if (version != nullptr) *version = CUFFT_VERSION;
  return CUFFT_SUCCESS;
}

Status GetProperty(libraryPropertyType type, int* value) {
  constexpr int kVersion[] = {CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) return CUFFT_INVALID_VALUE;
  *value = kVersion[type];
  return CUFFT_SUCCESS;
}

}  // namespace

CUDASIM_CUFFT_ENTRIES(CUDASIM_LIBRARY_EXPORT)

}  // namespace cudasim::cufft

namespace cudasim::library {

const EntryTable& Entries() { return cudasim::cufft::kTable; }

const int kNotSupported = CUFFT_NOT_SUPPORTED;

int RefusalOf(CUresult code) { return code == CUDA_SUCCESS ? CUFFT_SUCCESS : CUFFT_INTERNAL_ERROR; }

}  // namespace cudasim::library
