// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/code/compile.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "driver/code/nvjitlink.h"

namespace cudasim::driver {
namespace {

constexpr char kNoCompiler[] =
    "cudasim: there is no libnvJitLink.so that knows these options: the PTX was "
    "read, not compiled";
// nvJitLink wants what a driver does not: a driver compiles every version that there was (measured
// on an H200, driver 580.159.04).
constexpr char kTooOldForLinker[] = "requires PTX ISA .version 3.1";
constexpr char kNotCompiled[] = "cudasim: the PTX is older than 3.1: it was read, not compiled";
constexpr std::string_view kUndefined = "Undefined reference to '";

std::map<std::string, Compiled>& Cache() {
  static auto& cache = *new std::map<std::string, Compiled>;
  return cache;
}
std::mutex cache_mutex;

// What fails here is said in the log, and in nvJitLink's code by chance.
bool Complete(NvJitLink* link) {
  const size_t told = link->ErrorLog().size();
  return link->Complete() == NvJitLink::Result::kSuccess && link->ErrorLog().size() == told;
}

// A driver compiles a module as a whole: what is undefined is the compiler's error.
std::string TellUndefined(const std::string& log) {
  const size_t begin = log.find(kUndefined);
  if (begin == std::string::npos) return log;
  const size_t name = begin + kUndefined.size();
  return "ptxas fatal   : Unresolved extern function '" +
         log.substr(name, log.find('\'', name) - name) + "'";
}

// The linker's part of the log begins with "info"; a module that is loaded is not linked.
std::string WithoutLinker(std::string_view log) {
  std::string lines;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (line.substr(0, 4) == "info") continue;
    if (!lines.empty()) lines += '\n';
    lines += line;
  }
  return lines;
}

Compiled CompileNow(std::string_view text, const JitRequest& request) {
  Compiled compiled;
  const auto start = std::chrono::steady_clock::now();
  const auto link = NvJitLink::Create(request.CompilerOptions());
  if (link == nullptr) {
    compiled.outcome.info_log = kNoCompiler;
    return compiled;
  }
  const bool linked =
      link->Add(NvJitLink::Input::kPtx, text, "ptx input") == NvJitLink::Result::kSuccess &&
      Complete(link.get());
  if (link->ErrorLog().find(kTooOldForLinker) != std::string::npos) {
    compiled.outcome.info_log = kNotCompiled;
    return compiled;
  }
  compiled.outcome.error_log = TellUndefined(link->ErrorLog());
  compiled.outcome.info_log = WithoutLinker(link->InfoLog());
  if (linked) {
    compiled.cubin = link->Cubin();
  } else {
    compiled.outcome.code = CodeOfErrorLog(compiled.outcome.error_log);
  }
  const std::chrono::duration<float, std::milli> taken = std::chrono::steady_clock::now() - start;
  compiled.outcome.milliseconds = taken.count();
  return compiled;
}

std::string KeyOf(std::string_view text, const JitRequest& request) {
  std::string key;
  for (const std::string& option : request.CompilerOptions()) key += option + '\n';
  return key.append(text);
}

}  // namespace

Compiled Compile(std::string_view text, const JitRequest& request) {
  const std::string key = KeyOf(text, request);
  const std::lock_guard<std::mutex> lock(cache_mutex);
  const auto found = Cache().find(key);
  if (found == Cache().end()) {
    if (!IsJitDisabled()) return Cache().emplace(key, CompileNow(text, request)).first->second;
    Compiled disabled;
    disabled.outcome.code = CUDA_ERROR_JIT_COMPILATION_DISABLED;
    return disabled;
  }
  Compiled again = found->second;
  const bool cached = again.outcome.code == CUDA_SUCCESS && !IsSet("CUDA_CACHE_DISABLE");
  if (cached && !again.cubin.empty()) again.outcome = JitOutcome();
  return again;
}

CUresult CodeOfErrorLog(std::string_view log) {
  const bool too_new = log.find("Unsupported .version") != std::string_view::npos;
  return too_new ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_ERROR_INVALID_PTX;
}

bool IsJitDisabled() { return IsSet("CUDA_DISABLE_JIT") || IsSet("CUDA_DISABLE_PTX_JIT"); }

bool IsSet(const char* variable) {
  const char* value = secure_getenv(variable);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

}  // namespace cudasim::driver
