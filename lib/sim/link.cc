// SPDX-License-Identifier: Apache-2.0

#include "lib/sim/link.h"

#include <cuda.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "lib/sim/api.h"
#include "lib/sim/handle_table.h"
#include "lib/sim/jit.h"
#include "lib/sim/linking.h"
#include "lib/sim/panic.h"
#include "lib/sim/stack.h"

namespace cuguest_sim {
namespace {

// Works, and is destroyed, without its context too (measured on an H100, driver
// 580.159.04).
struct LinkState {
  struct {
    bool IsAlive() const { return true; }
  } life;
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
  CUresult code = FindLinkState(handle, &state);
  if (code != CUDA_SUCCESS) return code;
  if (data == nullptr || size == 0 || !IsInputType(type)) return CUDA_ERROR_INVALID_VALUE;
  code = CheckAddOptions(count, options, values);
  if (code != CUDA_SUCCESS) return code;
  return state.linking->Add(type, {static_cast<const char*>(data), size},
                            name != nullptr ? name : "");
}

CUresult LinkAddFile(CUlinkState handle, CUjitInputType type, const char* path, unsigned count,
                     CUjit_option* options, void** values) {
  LinkState state;
  CUresult code = FindLinkState(handle, &state);
  if (code != CUDA_SUCCESS) return code;
  if (path == nullptr || !IsInputType(type)) return CUDA_ERROR_INVALID_VALUE;
  code = CheckAddOptions(count, options, values);
  if (code != CUDA_SUCCESS) return code;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string data((std::istreambuf_iterator<char>(file)), {});
  data.push_back('\0');  // behind a text
  const size_t end = type == CU_JIT_INPUT_PTX ? data.size() : data.size() - 1;
  return state.linking->Add(type, std::string_view(data).substr(0, end), path);
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

}  // namespace cuguest_sim
