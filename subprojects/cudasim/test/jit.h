// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of compiled and linked code share: options with logs, and texts.

#ifndef CUDASIM_TEST_JIT_H_
#define CUDASIM_TEST_JIT_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "test/facts.h"

namespace cudasim_facts {

inline void* Value(size_t number) { return reinterpret_cast<void*>(std::uintptr_t{number}); }

// The arrays that a call is given: logs of `size` bytes, the time, and `more`.
class Jit {
 public:
  static constexpr size_t kUntouchedTime = 0x7777777777777777;

  explicit Jit(std::vector<std::pair<int, size_t>> more = {}, size_t size = 4096)
      : info_(size + 1, '#'), error_(size + 1, '#') {
    Add(CU_JIT_INFO_LOG_BUFFER, info_.data());
    Add(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, Value(size));
    Add(CU_JIT_ERROR_LOG_BUFFER, error_.data());
    Add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, Value(size));
    Add(CU_JIT_WALL_TIME, Value(kUntouchedTime));
    for (const auto& option : more)
      Add(OutOfRange<CUjit_option>(option.first), Value(option.second));
  }

  Jit(Jit&&) = default;
  Jit& operator=(Jit&&) = default;

  unsigned count() const { return static_cast<unsigned>(options_.size()); }
  CUjit_option* options() { return options_.data(); }
  void** values() { return values_.data(); }

  // What was answered.
  size_t InfoSize() const { return reinterpret_cast<std::uintptr_t>(values_[1]); }
  size_t ErrorSize() const { return reinterpret_cast<std::uintptr_t>(values_[3]); }
  size_t Answer(size_t of_more) const {
    return reinterpret_cast<std::uintptr_t>(values_[5 + of_more]);
  }
  std::string Info() const { return Text(info_); }
  std::string Error() const { return Text(error_); }
  char ErrorByte(size_t at) const { return error_[at]; }
  float Milliseconds() const {
    float time = 0;
    std::memcpy(&time, &values_[4], sizeof(time));
    return time;
  }
  bool IsUntouched() const {
    return info_[0] == '#' && error_[0] == '#' && values_[4] == Value(kUntouchedTime);
  }

  CUresult LoadModule(CUmodule* module, const void* image) {
    return RAW(cuModuleLoadDataEx)(module, image, count(), options(), values());
  }
  CUresult LoadLibrary(CUlibrary* library, const void* image) {
    return RAW(cuLibraryLoadData)(library, image, options(), values(), count(), nullptr, nullptr,
                                  0);
  }

 private:
  static std::string Text(const std::vector<char>& log) {
    return {log.begin(), std::find(log.begin(), log.end(), '\0')};
  }
  void Add(CUjit_option option, void* value) {
    options_.push_back(option);
    values_.push_back(value);
  }

  std::vector<char> info_;
  std::vector<char> error_;
  std::vector<CUjit_option> options_;
  std::vector<void*> values_;
};

// Whether the driver can compile and link: the simulation does it by the CUDA Toolkit's
// nvJitLink. A decorator for suites: *NeedsCompiler().
inline bool HasCompiler() {
  CUcontext context = nullptr;
  CUlinkState state = nullptr;
  std::string text = kPtx;
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  RAW(cuLinkCreate)(0, nullptr, nullptr, &state);
  const CUresult code = RAW(cuLinkAddData)(state, CU_JIT_INPUT_PTX, &text[0], text.size() + 1, "x",
                                           0, nullptr, nullptr);
  RAW(cuLinkDestroy)(state);
  RAW(cuCtxDestroy)(context);
  return code == CUDA_SUCCESS;
}
inline auto NeedsCompiler() {
  return cudasim_test::OnlyIf(HasCompiler, "needs the CUDA Toolkit's nvJitLink");
}

// With what no text had before, so that no cache has it.
inline std::string Unique(const std::string& text) {
  static int number = 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return "// " + std::to_string(now) + " " + std::to_string(++number) + "\n" + text;
}

inline const std::string kHead = ".version 7.0\n.target sm_50\n.address_size 64\n";
inline const std::string kMistake =
    kHead + ".visible .entry wrong()\n{\n.reg .b32 %r<2>;\nfrobnicate.u32 %r1;\nret;\n}\n";

// A kernel that calls what another text defines.
inline const std::string kCaller =
    kHead + R"(.extern .func (.param .b32 result) twice(.param .b32 x);
.visible .entry use(.param .u64 to, .param .u32 value)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  {
    .param .b32 argument;
    .param .b32 result;
    st.param.b32 [argument], %r1;
    call (result), twice, (argument);
    ld.param.b32 %r2, [result];
  }
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r2;
  ret;
}
)";
inline const std::string kCallee =
    kHead + R"(.visible .func (.param .b32 result) twice(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.s32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
}
)";

inline bool Contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// A link in the current context, whose arrays live as long as it does.
class OwnLink {
 public:
  explicit OwnLink(std::vector<std::pair<int, size_t>> more = {}) : jit_(std::move(more)) {
    OK(RAW(cuLinkCreate)(jit_.count(), jit_.options(), jit_.values(), &state_));
  }
  ~OwnLink() {
    if (state_ != nullptr) OK(RAW(cuLinkDestroy)(state_));
  }
  OwnLink(const OwnLink&) = delete;
  OwnLink& operator=(const OwnLink&) = delete;

  const Jit& jit() const { return jit_; }
  CUlinkState get() const { return state_; }

  CUresult Add(const std::string& data, CUjitInputType type = CU_JIT_INPUT_PTX,
               const char* name = "input") {
    std::string copy = data;
    const size_t nul = type == CU_JIT_INPUT_PTX ? 1 : 0;
    return RAW(cuLinkAddData)(state_, type, &copy[0], copy.size() + nul, name, 0, nullptr, nullptr);
  }
  // The cubin stays.
  CUresult Complete(std::string* cubin = nullptr) {
    void* bytes = nullptr;
    size_t size = 0;
    const CUresult code = RAW(cuLinkComplete)(state_, &bytes, &size);
    if (code == CUDA_SUCCESS && cubin != nullptr) {
      cubin->assign(static_cast<const char*>(bytes), size);
    }
    return code;
  }

 private:
  Jit jit_;
  CUlinkState state_ = nullptr;
};

// A context that is current.
struct InContext {
  InContext() { SetStack({context.get()}); }
  ~InContext() { SetStack({}); }
  OwnContext context;
};

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_JIT_H_
