// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/link.h"

#include <cuda.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driver/api.h"
#include "driver/code/compile.h"
#include "driver/code/file.h"
#include "driver/code/image/cubin.h"
#include "driver/code/image/ptx.h"
#include "driver/code/jit.h"
#include "driver/context/stack.h"
#include "driver/handle_table.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

constexpr char kUnrecognized[] = "error   : Binary format for key='0', ident='' is not recognized";

// Adds the time from here to its end.
class Stopwatch {
 public:
  explicit Stopwatch(float* milliseconds) : milliseconds_(milliseconds) {}
  ~Stopwatch() {
    const std::chrono::duration<float, std::milli> taken = Clock::now() - start_;
    *milliseconds_ += taken.count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  float* milliseconds_;
  Clock::time_point start_ = Clock::now();
};

NvJitLink::Input InputOf(CUjitInputType kind, std::string_view data) {
  if (cudaimage::IsElf(cudaimage::Bytes(data)) && kind == CU_JIT_INPUT_PTX)
    return NvJitLink::Input::kCubin;
  switch (kind) {
    case CU_JIT_INPUT_PTX:
      return NvJitLink::Input::kPtx;
    case CU_JIT_INPUT_FATBINARY:
      return NvJitLink::Input::kFatbin;
    case CU_JIT_INPUT_OBJECT:
      return NvJitLink::Input::kObject;
    case CU_JIT_INPUT_LIBRARY:
      return NvJitLink::Input::kArchive;
    default:
      return NvJitLink::Input::kCubin;
  }
}

// What others can refer to, as far as it can be read without the linker.
std::vector<std::string> DefinedIn(std::string_view data) {
  std::vector<std::string> names;
  cudaimage::Cubin cubin;
  if (ReadCubinTables(data, &cubin)) {
    for (const cudaimage::CubinSymbol& symbol : cubin.symbols) {
      const Elf64_Sym& entry = symbol.entry;
      const bool global =
          ELF64_ST_BIND(entry.st_info) == STB_GLOBAL;  // and not weak: there may be one
      const bool named = global && entry.st_shndx != SHN_UNDEF && !symbol.name.empty();
      if (named && entry.st_size > 0) names.emplace_back(symbol.name);
    }
    return names;
  }
  return IsPtx(data) ? VisibleNames(data) : names;
}

}  // namespace

Linking::Linking(const JitRequest& request) : request_(request) {
  {
    const Stopwatch stopwatch(&outcome_.milliseconds);
    linker_ = NvJitLink::Create(request_.CompilerOptions());
  }
  request_.Answer(outcome_);
}

CUresult Linking::Add(CUjitInputType kind, std::string_view data, const std::string& name) {
  if (is_complete_) return CUDA_ERROR_INVALID_VALUE;
  if (outcome_.code != CUDA_SUCCESS) return outcome_.code;
  CUresult code = CUDA_SUCCESS;
  {
    const Stopwatch stopwatch(&outcome_.milliseconds);
    code = Check(kind, data, name);
    if (code == CUDA_SUCCESS) code = AddToLinker(kind, data, name);
  }
  request_.Answer(outcome_);
  return code;
}

// What the driver looks at before it asks its linker.
CUresult Linking::Check(CUjitInputType kind, std::string_view data, const std::string& name) {
  if (kind == CU_JIT_INPUT_NVVM) return outcome_.code = CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  CUresult code = CUDA_SUCCESS;
  if (kind == CU_JIT_INPUT_CUBIN) code = CheckCubin(data);
  if (kind == CU_JIT_INPUT_PTX && !cudaimage::IsElf(cudaimage::Bytes(data))) code = CheckPtx(data);
  return code != CUDA_SUCCESS ? code : Define(data, name);
}

CUresult Linking::CheckCubin(std::string_view data) {
  cudaimage::Cubin cubin;
  if (!ReadCubinTables(data, &cubin)) return outcome_.code = CUDA_ERROR_INVALID_IMAGE;
  const bool fits = cubin.IsRelocatable() && cubin.Architecture() == request_.Architecture();
  return fits ? CUDA_SUCCESS : outcome_.code = CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult Linking::CheckPtx(std::string_view data) {
  if (!IsPtx(data)) {
    TellError(kUnrecognized);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (IsJitDisabled()) return CUDA_ERROR_JIT_COMPILATION_DISABLED;
  return request_.TargetCode();
}

// nvJitLink takes the first of two definitions, and prints.
CUresult Linking::Define(std::string_view data, const std::string& name) {
  for (const std::string& symbol : DefinedIn(data)) {
    const auto added = defined_.emplace(symbol, name);
    if (added.second) continue;
    TellError("error   : Multiple definition of '" + symbol + "' in '" + name +
              "', first defined in '" + added.first->second + "'");
    outcome_.code = CUDA_ERROR_UNKNOWN;
  }
  return outcome_.code;
}

CUresult Linking::AddToLinker(CUjitInputType kind, std::string_view data, const std::string& name) {
  if (linker_ == nullptr) return outcome_.code = CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  const NvJitLink::Result result = linker_->Add(InputOf(kind, data), data, name);
  if (result == NvJitLink::Result::kWrongKind) return TellWrongKind(kind, name);
  const size_t told = outcome_.error_log.size();
  TellLinker();
  if (result == NvJitLink::Result::kSuccess) return CUDA_SUCCESS;
  return CodeOfErrorLog(std::string_view(outcome_.error_log).substr(told));
}

CUresult Linking::TellWrongKind(CUjitInputType kind, const std::string& name) {
  switch (kind) {
    case CU_JIT_INPUT_OBJECT:
      TellError("fatal   : Could not find fatbin in '" + name + "'");
      return CUDA_ERROR_UNKNOWN;
    case CU_JIT_INPUT_LIBRARY:
      TellError("fatal   : unexpected archive format");
      return CUDA_ERROR_UNKNOWN;
    case CU_JIT_INPUT_FATBINARY:
      TellError(kUnrecognized);
      break;
    default:
      break;
  }
  TellError(kUnrecognized);
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult Linking::Complete(std::string_view* cubin) {
  if (is_complete_) return CUDA_ERROR_INVALID_HANDLE;
  if (outcome_.code != CUDA_SUCCESS) return outcome_.code;
  CUresult code = CUDA_SUCCESS;
  {
    const Stopwatch stopwatch(&outcome_.milliseconds);
    code = Finish();
  }
  request_.Answer(outcome_);
  if (code == CUDA_SUCCESS) *cubin = cubin_;
  return code;
}

CUresult Linking::Finish() {
  if (linker_ == nullptr) return outcome_.code = CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  // What is undefined is said in the log, and in nvJitLink's code by chance.
  const size_t told = outcome_.error_log.size();
  const bool linked = linker_->Complete() == NvJitLink::Result::kSuccess;
  TellLinker();
  if (!linked || outcome_.error_log.size() != told) return outcome_.code = CUDA_ERROR_UNKNOWN;
  cubin_ = linker_->Cubin();
  is_complete_ = true;
  return CUDA_SUCCESS;
}

// What its logs have beyond what was told.
void Linking::TellLinker() {
  outcome_.info_log = linker_->InfoLog();
  const std::string errors = linker_->ErrorLog();
  const bool is_longer = errors.compare(0, linker_errors_.size(), linker_errors_) == 0;
  std::string_view added = errors;
  if (is_longer) added.remove_prefix(linker_errors_.size());
  while (!added.empty() && added.front() == '\n') added.remove_prefix(1);
  if (!added.empty()) TellError(std::string(added));
  linker_errors_ = errors;
}

void Linking::TellError(const std::string& text) {
  if (!outcome_.error_log.empty()) outcome_.error_log += '\n';
  outcome_.error_log += text;
}

namespace {

constexpr char kElfMagic = '\177';

// Works, and is destroyed, without its context too (measured on an H100, driver
// 580.159.04).
struct LinkState {
  Eternal incarnation;
  std::shared_ptr<Linking> linking;
};

HandleTable<CUlinkState, LinkState>& LinkStates() {
  static auto& table = *new HandleTable<CUlinkState, LinkState>(40);
  return table;
}

CUresult FindLinkState(CUlinkState handle, LinkState* state) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Handled found = LinkStates().Find(handle, state);
  if (found == Handled::kNever) PanicHandle(handle, "this never was a link state");
  if (found != Handled::kAlive) PanicHandle(handle, "the link state was destroyed");
  return CUDA_SUCCESS;
}

CUresult CheckAddOptions(unsigned count, CUjit_option* options, void** values) {
  JitRequest request;
  return JitRequest::Read(JitRequest::Call::kLinkAdd, count, options, values, &request);
}

bool IsInputType(CUjitInputType type) { return type >= 0 && type < CU_JIT_NUM_INPUT_TYPES; }

CUresult Add(const LinkState& state, CUjitInputType type, const char* data, size_t size,
             const char* name, unsigned count, CUjit_option* options, void** values) {
  if (!IsInputType(type)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = CheckAddOptions(count, options, values);
  if (code != CUDA_SUCCESS) return code;
  // A text ends at its NUL, wherever `size` says (measured on an H100, driver 580.159.04).
  const bool is_text = type == CU_JIT_INPUT_PTX && *data != kElfMagic;
  return state.linking->Add(type, {data, is_text ? std::strlen(data) + 1 : size},
                            name != nullptr ? name : "");
}

}  // namespace

size_t CountLinkStates() { return LinkStates().CountAlive(); }

CUresult LinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* handle) {
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitRequest request;
  code = JitRequest::Read(JitRequest::Call::kLinkCreate, count, options, values, &request);
  if (code != CUDA_SUCCESS) return code;
  LinkState state;
  state.linking = std::make_shared<Linking>(request);
  return LinkStates().Add(state, handle);
}

// The options are checked; those of the link are what all of it is compiled with.
CUresult LinkAddData(CUlinkState handle, CUjitInputType type, void* data, size_t size,
                     const char* name, unsigned count, CUjit_option* options, void** values) {
  LinkState state;
  const CUresult code = FindLinkState(handle, &state);
  if (code != CUDA_SUCCESS) return code;
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  return Add(state, type, static_cast<const char*>(data), size, name, count, options, values);
}

CUresult LinkAddFile(CUlinkState handle, CUjitInputType type, const char* path, unsigned count,
                     CUjit_option* options, void** values) {
  LinkState state;
  CUresult code = FindLinkState(handle, &state);
  if (code != CUDA_SUCCESS) return code;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string data;
  code = ReadFile(path, &data);
  return code != CUDA_SUCCESS
             ? code
             : Add(state, type, data.c_str(), data.size(), path, count, options, values);
}

CUresult LinkComplete(CUlinkState handle, void** cubin, size_t* size) {
  LinkState state;
  CUresult code = FindLinkState(handle, &state);
  if (code != CUDA_SUCCESS) return code;
  if (cubin == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string_view bytes;
  code = state.linking->Complete(&bytes);
  if (code != CUDA_SUCCESS) return code;
  *cubin = const_cast<char*>(bytes.data());
  if (size != nullptr) *size = bytes.size();
  return CUDA_SUCCESS;
}

CUresult LinkDestroy(CUlinkState handle) {
  LinkState state;
  const CUresult code = FindLinkState(handle, &state);
  if (code == CUDA_SUCCESS) LinkStates().Remove(handle);
  return code;
}

}  // namespace cudasim::driver
