// SPDX-License-Identifier: Apache-2.0

#include "cuguest/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "cuguest/internal/stack_calls.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

struct Entry {
  const char* name;
  int version;
  const char* symbol;
  std::size_t offset;
  bool required;
};

constexpr Entry kEntries[] = {
#define CUGUEST_ROW(required, Name, version, symbol) \
  {"cu" #Name, version, symbol, offsetof(Driver, Name), required},
#define CUGUEST_REQUIRED_ROW(Name, version, symbol, parameters) \
  CUGUEST_ROW(true, Name, version, symbol)
#define CUGUEST_OPTIONAL_ROW(Name, version, symbol, parameters) \
  CUGUEST_ROW(false, Name, version, symbol)
    CUGUEST_REQUIRED_ENTRIES(CUGUEST_REQUIRED_ROW) CUGUEST_OPTIONAL_ENTRIES(CUGUEST_OPTIONAL_ROW)
#undef CUGUEST_OPTIONAL_ROW
#undef CUGUEST_REQUIRED_ROW
#undef CUGUEST_ROW
};

// The first driver of each API version that an entry may need, from the table "CUDA
// Toolkit and Corresponding Driver Versions" of the CUDA Toolkit release notes (Linux).
struct Floor {
  int version;
  const char* driver;
};
constexpr Floor kFloors[] = {
    {13000, "580.65.06"}, {12080, "570.26"},    {12050, "555.42"}, {12000, "525.60.13"},
    {11020, "460.27.03"}, {11000, "450.80.02"}, {10020, "440.33"}, {10010, "418.39"},
    {10000, "410.48"},    {9020, "396.26"},     {8000, "367.48"},  {0, "346.46"},
};

const Floor& FloorOf(int version) {
  const Floor* floor = kFloors;
  while (floor->version > version) ++floor;
  return *floor;
}

std::string VersionText(int version) {
  return absl::StrCat("CUDA ", version / 1000, ".", version % 1000 / 10);
}

// Why there is no table. Fixed storage, because it lives in a constant-initialised
// global without a destructor.
struct Failure {
  DriverProblem problem = DriverProblem::kNone;
  CUresult code = CUDA_SUCCESS;
  char detail[400] = {};
};

void Fail(Failure* failure, DriverProblem problem, CUresult code, const std::string& detail) {
  failure->problem = problem;
  failure->code = code;
  std::snprintf(failure->detail, sizeof(failure->detail), "%s", detail.c_str());
}

constexpr char kProblemPayload[] = "cuguest/DriverProblem";

absl::Status ProblemStatus(DriverProblem problem, CUresult code, std::string_view doing,
                           std::string_view detail) {
  absl::Status status = internal::MakeStatus(code, doing, detail);
  status.SetPayload(kProblemPayload, absl::Cord(absl::StrCat(static_cast<int>(problem))));
  return status;
}

absl::Status ToStatus(const Failure& failure) {
  return ProblemStatus(failure.problem, failure.code, "load the CUDA driver", failure.detail);
}

// Finds entries in one library: by cuGetProcAddress where it has it, which is the only
// way to be given the signature that was asked for, and by exported name where it has
// not (drivers before CUDA 11.3).
class Finder {
 public:
  explicit Finder(void* library)
      : library_(library),
        by_version_(reinterpret_cast<ByVersion>(dlsym(library, "cuGetProcAddress_v2"))),
        by_version_v1_(reinterpret_cast<ByVersionV1>(dlsym(library, "cuGetProcAddress"))) {}

  // nullptr if there is none, or if the library is the stub (see `is_stub`).
  void* Find(const Entry& entry) {
    if (by_version_ == nullptr && by_version_v1_ == nullptr) return dlsym(library_, entry.symbol);
    void* function = nullptr;
    int status = 0;
    // 1 is CU_GET_PROC_ADDRESS_LEGACY_STREAM: stream 0 must not change its meaning with
    // the macros of whoever compiled this file.
    const CUresult code = by_version_ != nullptr
                              ? by_version_(entry.name, &function, entry.version, 1, &status)
                              : by_version_v1_(entry.name, &function, entry.version, 1);
    if (code == CUDA_ERROR_STUB_LIBRARY) is_stub_ = true;
    return code == CUDA_SUCCESS ? function : nullptr;
  }

  bool is_stub() const { return is_stub_; }

 private:
  using ByVersion = CUresult (*)(const char*, void**, int, unsigned long long, int*);
  using ByVersionV1 = CUresult (*)(const char*, void**, int, unsigned long long);
  void* library_;
  ByVersion by_version_;
  ByVersionV1 by_version_v1_;
  bool is_stub_ = false;
};

void FailAsStub(const char* path, Failure* failure) {
  Fail(failure, DriverProblem::kStub, CUDA_ERROR_STUB_LIBRARY, path);
}

bool FillTable(const char* path, Finder finder, Driver* driver, Failure* failure) {
  const Entry* missing = nullptr;
  for (const Entry& entry : kEntries) {
    void* function = finder.Find(entry);
    if (finder.is_stub()) {
      FailAsStub(path, failure);
      return false;
    }
    if (function == nullptr && entry.required && missing == nullptr) missing = &entry;
    std::memcpy(reinterpret_cast<char*>(driver) + entry.offset, &function, sizeof(function));
  }
  const CUresult code = driver->DriverGetVersion == nullptr
                            ? CUDA_ERROR_NOT_FOUND
                            : driver->DriverGetVersion(&driver->version);
  if (code == CUDA_ERROR_STUB_LIBRARY) {
    FailAsStub(path, failure);
    return false;
  }
  if (missing == nullptr) return true;
  const std::string found =
      driver->version == 0 ? "of unknown version" : VersionText(driver->version);
  Fail(failure, DriverProblem::kTooOld, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
       absl::StrCat(path, " (", found, ") has no ", missing->name, " of ",
                    VersionText(missing->version), "; driver ", FloorOf(missing->version).driver,
                    " or newer is needed"));
  return false;
}

bool Resolve(const char* path, Driver* driver, Failure* failure) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = dlerror();
    Fail(failure, DriverProblem::kNoLibrary, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
         reason != nullptr ? reason : path);
    return false;
  }
  Driver table;
  if (!FillTable(path, Finder(library), &table, failure)) return false;
  *driver = table;
  return true;
}

// Everything here is constant-initialised and trivially destroyed: a library that
// embeds this may be loaded, unloaded and reloaded, and used from static destructors.
struct Process {
  std::once_flag once;
  Driver table;
  Failure failure;
  std::atomic<pid_t> resolved_in{0};
  std::atomic<pid_t> initialized_in{0};
};
Process g_process;

void ResolveOnce() {
  std::call_once(g_process.once, [] {
    g_process.resolved_in.store(getpid(), std::memory_order_relaxed);
    if (!Resolve("libcuda.so.1", &g_process.table, &g_process.failure)) return;
    const Driver& table = g_process.table;
    internal::StackCalls& calls = internal::g_stack_calls;
    internal::g_driver.store(&table, std::memory_order_release);
    __atomic_store_n(&calls.push, table.CtxPushCurrent, __ATOMIC_RELAXED);
    __atomic_store_n(&calls.pop, table.CtxPopCurrent, __ATOMIC_RELAXED);
    __atomic_store_n(&calls.get_current, table.CtxGetCurrent, __ATOMIC_RELEASE);
  });
}

absl::Status InitStatus(CUresult code) {
  constexpr char kDoing[] = "initialise the CUDA driver";
  switch (code) {
    case CUDA_ERROR_NOT_INITIALIZED:  // the only way cuInit itself says this
      return ProblemStatus(
          DriverProblem::kForkedChild, code, kDoing,
          absl::StrCat("process ", getpid(), " was forked from one that had initialised CUDA"));
    case CUDA_ERROR_NO_DEVICE:
      return ProblemStatus(DriverProblem::kNoDevice, code, kDoing, "no device");
    case CUDA_ERROR_STUB_LIBRARY:
      return ProblemStatus(DriverProblem::kStub, code, kDoing, "");
    default:
      return ProblemStatus(DriverProblem::kOther, code, kDoing, "");
  }
}

}  // namespace

namespace internal {

std::atomic<const Driver*> g_driver{nullptr};

StackCalls g_stack_calls = {
    [](CUcontext*) { return kNotResolved; },
    [](CUcontext) { return kNotResolved; },
    [](CUcontext*) { return kNotResolved; },
};

const Driver* ResolveDriver(CUresult* code) noexcept {
  ResolveOnce();
  *code = g_process.failure.code;
  return g_driver.load(std::memory_order_acquire);
}

bool IsForkedChild() noexcept {
  const pid_t resolved_in = g_process.resolved_in.load(std::memory_order_relaxed);
  return resolved_in != 0 && resolved_in != getpid();
}

}  // namespace internal

absl::StatusOr<const Driver*> Driver::Get() {
  CUresult code = CUDA_SUCCESS;
  const Driver* driver = internal::TryDriver(&code);
  if (driver != nullptr) return driver;
  return ToStatus(g_process.failure);
}

absl::StatusOr<const Driver*> Driver::GetInitialized() {
  absl::StatusOr<const Driver*> driver = Get();
  if (!driver.ok()) return driver;
  const pid_t self = getpid();
  if (g_process.initialized_in.load(std::memory_order_acquire) == self) return driver;
  const CUresult code = (*driver)->Init(0);
  if (code != CUDA_SUCCESS) return InitStatus(code);
  g_process.initialized_in.store(self, std::memory_order_release);
  return driver;
}

absl::Status Driver::Load(const char* path, Driver* driver) {
  Failure failure;
  return Resolve(path, driver, &failure) ? absl::OkStatus() : ToStatus(failure);
}

absl::Status Driver::MissingEntry(std::size_t offset) const {
  for (const Entry& entry : kEntries) {
    if (entry.offset != offset) continue;
    return ProblemStatus(DriverProblem::kEntryMissing, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
                         absl::StrCat("look up ", entry.name),
                         absl::StrCat("it needs driver ", FloorOf(entry.version).driver, " (",
                                      VersionText(entry.version), ") or newer, and this one is of ",
                                      VersionText(version)));
  }
  return absl::InternalError("the offset names no entry of the driver table");
}

DriverProblem ProblemOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kProblemPayload);
  if (!payload.has_value()) return DriverProblem::kNone;
  return static_cast<DriverProblem>(std::atoi(std::string(*payload).c_str()));
}

CUGUEST_END_NAMESPACE
