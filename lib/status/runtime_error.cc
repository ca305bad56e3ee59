// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/internal/runtime_error.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "cuguest/status.h"
#include "lib/core/code_table.h"
#include "lib/core/error_rows.h"
#include "lib/core/string_pool.h"
#include "lib/status/error_status.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

struct RuntimeRow {
  int code;
  const char* name;
  int driver;  // the driver's code
  const char* text;
};

// The codes of the CUDA 13.0 runtime header and the three that 13.1 to 13.3 add, in ascending
// order, without those that say the same as the driver's of the same number (error.cc). Plain
// numbers, so that no header of the runtime is needed; the test holds them against the runtime and
// the driver.
constexpr RuntimeRow kRuntimeRows[] = {
    {3, "cudaErrorInitializationError", 3,
     "the runtime could not initialise the driver: mostly a process that was forked from one that "
     "had used CUDA, where CUDA cannot be used: start it with exec or spawn"},
    {4, "cudaErrorCudartUnloading", 4,
     "the process is ending and the runtime is unloading; nothing is left to release"},
    {9, "cudaErrorInvalidConfiguration", 1,
     "the launch asks for more blocks, threads or shared memory than the device has, or for none"},
    {10, "cudaErrorVersionTranslation", 801,
     "the driver is newer than the runtime and answered with a kind of graph node that the runtime "
     "does not know: use a newer runtime"},
    {12, "cudaErrorInvalidPitchValue", 1, "a pitch is outside what the device allows"},
    {13, "cudaErrorInvalidSymbol", 500,
     "the symbol is not a variable of a module that this copy of the runtime has registered"},
    {16, "cudaErrorInvalidHostPointer", 1, "a host pointer is not valid"},
    {17, "cudaErrorInvalidDevicePointer", 1, "a device pointer is not valid"},
    {18, "cudaErrorInvalidTexture", 400, "the texture is not valid"},
    {19, "cudaErrorInvalidTextureBinding", 1, "the texture is not bound"},
    {20, "cudaErrorInvalidChannelDescriptor", 1,
     "the channel descriptor is not one of the known formats"},
    {21, "cudaErrorInvalidMemcpyDirection", 1,
     "the direction of the copy is not one of cudaMemcpyKind"},
    {22, "cudaErrorAddressOfConstant", 1,
     "deprecated: constant variables may have their address taken since CUDA 3.1"},
    {23, "cudaErrorTextureFetchFailed", 999,
     "deprecated: device emulation ended with CUDA 3.1 (texture fetch)"},
    {24, "cudaErrorTextureNotBound", 999,
     "deprecated: device emulation ended with CUDA 3.1 (texture not bound)"},
    {25, "cudaErrorSynchronizationError", 999,
     "deprecated: device emulation ended with CUDA 3.1 (synchronisation)"},
    {26, "cudaErrorInvalidFilterSetting", 1,
     "a texture that is not of floats is accessed with linear filtering"},
    {27, "cudaErrorInvalidNormSetting", 1,
     "a texture's elements cannot be read as normalised floats"},
    {28, "cudaErrorMixedDeviceExecution", 999,
     "deprecated: device emulation ended with CUDA 3.1 (mixed execution)"},
    {31, "cudaErrorNotYetImplemented", 801, "deprecated: the call is not implemented"},
    {32, "cudaErrorMemoryValueTooLarge", 999,
     "deprecated: device emulation ended with CUDA 3.1 (pointer beyond 32 bits)"},
    {35, "cudaErrorInsufficientDriver", 36,
     "the installed driver is older than this CUDA runtime needs, or there is none: update it, or "
     "use a runtime of the driver's major version"},
    {37, "cudaErrorInvalidSurface", 400, "the surface is not valid"},
    {43, "cudaErrorDuplicateVariableName", 200,
     "two variables of the registered device code have one name"},
    {44, "cudaErrorDuplicateTextureName", 200,
     "two textures of the registered device code have one name"},
    {45, "cudaErrorDuplicateSurfaceName", 200,
     "two surfaces of the registered device code have one name"},
    {49, "cudaErrorIncompatibleDriverContext", 201,
     "the current context is not the primary one or of an older API, and this runtime call cannot "
     "use it"},
    {52, "cudaErrorMissingConfiguration", 401,
     "a kernel was started without cudaConfigureCall, which <<<>>> does"},
    {53, "cudaErrorPriorLaunchFailure", 999,
     "deprecated: device emulation ended with CUDA 3.1 (earlier launch)"},
    {65, "cudaErrorLaunchMaxDepthExceeded", 701, "launches from the device are nested too deeply"},
    {66, "cudaErrorLaunchFileScopedTex", 801,
     "a kernel that was launched from the device uses a texture of file scope"},
    {67, "cudaErrorLaunchFileScopedSurf", 801,
     "a kernel that was launched from the device uses a surface of file scope"},
    {68, "cudaErrorSyncDepthExceeded", 701,
     "device code synchronises at a greater depth than cudaLimitDevRuntimeSyncDepth"},
    {69, "cudaErrorLaunchPendingCountExceeded", 701,
     "more launches from the device are pending than cudaLimitDevRuntimePendingLaunchCount"},
    {98, "cudaErrorInvalidDeviceFunction", 500,
     "the kernel is not a function that this copy of the runtime has registered, or has no code "
     "for this device"},
    {103, "cudaErrorSoftwareValidityNotEstablished", 802, "the integrity checks of CUDA failed"},
    {127, "cudaErrorStartupFailure", 999, "the runtime failed to start"},
    {10000, "cudaErrorApiFailureBase", 999,
     "deprecated: numbers above this one are the driver's plus 10000"},
};
constexpr CodeTable<RuntimeRow> kTable = kRuntimeRows;

// A number that cuguest does not know means the same to both: NVIDIA has numbered
// alike since CUDA 10.1.
constexpr char kUnrecognizedName[] = "cudaErrorUnrecognized";

// The runtime's names of the driver's codes.
struct NameRow {
  std::uint16_t code;
  std::uint16_t name;
};

constexpr std::size_t BytesOfRuntimeNames() {
  std::size_t bytes = 0;
  for (const KnownError& error : kKnownErrors) bytes += BytesOf(error.runtime_name);
  return bytes;
}

struct RuntimeNames {
  constexpr RuntimeNames() {
    for (std::size_t i = 0; i < std::size(kKnownErrors); ++i) {
      rows[i].code = static_cast<std::uint16_t>(kKnownErrors[i].code);
      rows[i].name = pool.Add(kKnownErrors[i].runtime_name);
    }
  }
  StringPool<BytesOfRuntimeNames()> pool;
  NameRow rows[std::size(kKnownErrors)] = {};
};
constexpr RuntimeNames kRuntimeNames;

// nullptr: the runtime has no such code.
const char* RuntimeNameOf(CUresult code) {
  const NameRow* const row = CodeTable<NameRow>(kRuntimeNames.rows).Find(static_cast<int>(code));
  return row != nullptr ? kRuntimeNames.pool.At(row->name) : kUnrecognizedName;
}

constexpr int kRuntimeUnknown = 999;
constexpr int kApiFailureBase = 10000;  // cudaErrorApiFailureBase

constexpr char kRuntimePayload[] = "cuguest/cudaError_t";

}  // namespace

CUresult RuntimeToDriver(int code) noexcept {
  const RuntimeRow* row = kTable.Find(code);
  if (row != nullptr) return static_cast<CUresult>(row->driver);
  return static_cast<CUresult>(code > kApiFailureBase ? code - kApiFailureBase : code);
}

int DriverToRuntime(CUresult code) noexcept {
  return RuntimeNameOf(code) == nullptr ? kRuntimeUnknown : static_cast<int>(code);
}

const char* RuntimeErrorName(int code) noexcept {
  const RuntimeRow* row = kTable.Find(code);
  const char* const name = row != nullptr ? row->name : RuntimeNameOf(static_cast<CUresult>(code));
  return name != nullptr ? name : kUnrecognizedName;
}

const char* RuntimeErrorText(int code) noexcept {
  const RuntimeRow* row = kTable.Find(code);
  return row != nullptr ? row->text : ErrorText(RuntimeToDriver(code));
}

absl::Status RuntimeErrorStatus(int code, std::string_view doing, std::string_view object,
                                std::string_view said) {
  absl::Status status = ErrorStatus(RuntimeToDriver(code), doing, object, said);
  SetNumber(kRuntimePayload, code, &status);
  return status;
}

absl::Status MakeRuntimeStatus(int code, std::string_view doing, std::string_view object) {
  return RuntimeErrorStatus(
      code, doing, object,
      absl::StrCat(RuntimeErrorName(code), " (", code, "): ", RuntimeErrorText(code)));
}

std::optional<int> RuntimeCodeOf(const absl::Status& status) {
  const std::optional<int> code = NumberOf(kRuntimePayload, status);
  if (code.has_value()) return code;
  const std::optional<CUresult> driver = CodeOf(status);
  if (!driver.has_value()) return std::nullopt;
  return DriverToRuntime(*driver);
}

CUGUEST_END_INTERNAL_NAMESPACE
