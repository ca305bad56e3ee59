// SPDX-License-Identifier: Apache-2.0

#include "driver/code/link.h"

#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "driver/api.h"
#include "driver/code/jit.h"
#include "driver/code/linking.h"
#include "driver/context/stack.h"
#include "driver/handle_table.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

constexpr char kElfMagic = '\177';

// Works, and is destroyed, without its context too (measured on an H100, driver
// 580.159.04).
struct LinkState {
  Eternal life;
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

// FILE_NOT_FOUND, or OUT_OF_MEMORY for a folder.
CUresult ReadFile(const char* path, std::string* data) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  char buffer[4096];
  for (size_t read = sizeof(buffer); read == sizeof(buffer);) {
    read = std::fread(buffer, 1, sizeof(buffer), file);
    data->append(buffer, read);
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

}  // namespace

size_t CountLinkStates() { return LinkStates().CountAlive(); }

CUresult LinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* handle) {
  Life life;
  CUresult code = CurrentReady(&life);
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
