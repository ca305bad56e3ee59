// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/system_object.h"

#include <cstddef>

#include "audit/text.h"

namespace cuguest::audit {
namespace {

struct Known {
  std::string_view stem;  // "libcuda" of "libcuda.so.1"
  SystemRole role;
};

constexpr Known kLibraries[] = {
    {"libcuda", SystemRole::kDriver},
    {"libcudadebugger", SystemRole::kDriver},
    {"libnvidia-allocator", SystemRole::kDriver},
    {"libnvidia-cfg", SystemRole::kDriver},
    {"libnvidia-encode", SystemRole::kDriver},
    {"libnvidia-fbc", SystemRole::kDriver},
    {"libnvidia-gpucomp", SystemRole::kDriver},
    {"libnvidia-ml", SystemRole::kDriver},
    {"libnvidia-nvvm", SystemRole::kDriver},
    {"libnvidia-opticalflow", SystemRole::kDriver},
    {"libnvidia-ptxjitcompiler", SystemRole::kDriver},
    {"libnvidia-rtcore", SystemRole::kDriver},
    {"libcudart", SystemRole::kRuntime},
    {"libcupti", SystemRole::kTool},
    {"libsanitizer-collection", SystemRole::kTool},
    {"libsanitizer-public", SystemRole::kTool},
    {"libcuguest-audit", SystemRole::kTool},
    {"libcublas", SystemRole::kToolkit},
    {"libcublasLt", SystemRole::kToolkit},
    {"libcudnn", SystemRole::kToolkit},
    {"libcudnn_adv", SystemRole::kToolkit},
    {"libcudnn_cnn", SystemRole::kToolkit},
    {"libcudnn_engines_precompiled", SystemRole::kToolkit},
    {"libcudnn_engines_runtime_compiled", SystemRole::kToolkit},
    {"libcudnn_graph", SystemRole::kToolkit},
    {"libcudnn_heuristic", SystemRole::kToolkit},
    {"libcudnn_ops", SystemRole::kToolkit},
    {"libcufft", SystemRole::kToolkit},
    {"libcufftw", SystemRole::kToolkit},
    {"libcufile", SystemRole::kToolkit},
    {"libcurand", SystemRole::kToolkit},
    {"libcusolver", SystemRole::kToolkit},
    {"libcusolverMg", SystemRole::kToolkit},
    {"libcusparse", SystemRole::kToolkit},
    {"libcusparseLt", SystemRole::kToolkit},
    {"libcutensor", SystemRole::kToolkit},
    {"libcutensorMg", SystemRole::kToolkit},
    {"libnccl", SystemRole::kToolkit},
    {"libnppc", SystemRole::kToolkit},
    {"libnppial", SystemRole::kToolkit},
    {"libnppicc", SystemRole::kToolkit},
    {"libnppidei", SystemRole::kToolkit},
    {"libnppif", SystemRole::kToolkit},
    {"libnppig", SystemRole::kToolkit},
    {"libnppim", SystemRole::kToolkit},
    {"libnppist", SystemRole::kToolkit},
    {"libnppisu", SystemRole::kToolkit},
    {"libnppitc", SystemRole::kToolkit},
    {"libnpps", SystemRole::kToolkit},
    {"libnvjpeg", SystemRole::kToolkit},
    {"libcuguest", SystemRole::kPassesOn},
    {"libc", SystemRole::kPassesOn},
    {"libc.musl-x86_64", SystemRole::kPassesOn},
    {"ld-linux", SystemRole::kPassesOn},
    {"ld-linux-x86-64", SystemRole::kPassesOn},
    {"ld-musl-x86_64", SystemRole::kPassesOn},
    {"linux-vdso", SystemRole::kPassesOn},
    {"libpthread", SystemRole::kPassesOn},
    {"libdl", SystemRole::kPassesOn},
    {"librt", SystemRole::kPassesOn},
    {"libm", SystemRole::kPassesOn},
    {"libstdc++", SystemRole::kPassesOn},
    {"libc++", SystemRole::kPassesOn},
    {"libc++abi", SystemRole::kPassesOn},
    {"libgcc_s", SystemRole::kPassesOn},
    {"libunwind", SystemRole::kPassesOn},
    {"libunwind-x86_64", SystemRole::kPassesOn},
    {"libffi", SystemRole::kPassesOn},
    {"libgomp", SystemRole::kPassesOn},
    {"libomp", SystemRole::kPassesOn},
    {"libomp5", SystemRole::kPassesOn},
    {"libiomp5", SystemRole::kPassesOn},
    {"libasan", SystemRole::kPassesOn},
    {"liblsan", SystemRole::kPassesOn},
    {"libtsan", SystemRole::kPassesOn},
    {"libubsan", SystemRole::kPassesOn},
    {"libclang_rt.asan", SystemRole::kPassesOn},
    {"libclang_rt.asan-x86_64", SystemRole::kPassesOn},
    {"libclang_rt.tsan", SystemRole::kPassesOn},
    {"libclang_rt.tsan-x86_64", SystemRole::kPassesOn},
    {"libclang_rt.ubsan_standalone", SystemRole::kPassesOn},
    {"libclang_rt.ubsan_standalone-x86_64", SystemRole::kPassesOn},
};

// Extension modules of Python, which have no soname.
constexpr std::string_view kModules[] = {"_ctypes", "_cffi_backend"};

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kVersion = ".0123456789";
constexpr std::string_view kHash = "0123456789abcdef";

bool IsOf(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

// What precedes ".so" and versions behind it; empty if the name has another form.
std::string_view StemOf(std::string_view file) {
  const std::size_t end = file.rfind(".so");
  if (end == std::string_view::npos) return "";
  const std::string_view version = file.substr(end + 3);
  const bool is_version = version.empty() || (version[0] == '.' && IsOf(version, kVersion));
  return is_version ? file.substr(0, end) : "";
}

// Without the version of older files of glibc, "libc-2.31.so", and the hash that auditwheel puts
// behind the names of libraries in a wheel, "libgomp-a34b3233.so.1".
std::string_view WithoutSuffix(std::string_view stem) {
  const std::size_t dash = stem.rfind('-');
  if (dash == std::string_view::npos) return stem;
  const std::string_view suffix = stem.substr(dash + 1);
  const bool is_hash = suffix.size() >= 8 && IsOf(suffix, kHash);
  const bool is_version = IsOf(suffix, kVersion) && suffix.find('.') != std::string_view::npos;
  return is_hash || is_version ? stem.substr(0, dash) : stem;
}

SystemRole FindLibrary(std::string_view stem) {
  for (const Known& known : kLibraries) {
    if (stem == known.stem) return known.role;
  }
  return SystemRole::kNone;
}

// "3.12", and letters of the build behind it: "3.13t", "3.12d".
bool IsPythonVersion(std::string_view text) {
  while (!text.empty() && (text.back() == 'd' || text.back() == 'm' || text.back() == 't')) {
    text.remove_suffix(1);
  }
  return text.empty() ||
         (IsOf(text, kVersion) && kDigits.find(text.front()) != std::string_view::npos);
}

bool IsInterpreter(std::string_view file) {
  if (StartsWith(file, "libpython")) {
    const std::string_view stem = StemOf(file);
    return stem.size() > 9 && IsPythonVersion(stem.substr(9));
  }
  return StartsWith(file, "python") && IsPythonVersion(file.substr(6));
}

// "_ctypes.cpython-312-x86_64-linux-gnu.so".
bool IsModule(std::string_view file) {
  for (const std::string_view module : kModules) {
    if (!StartsWith(file, module)) continue;
    const std::string_view rest = file.substr(module.size());
    if (rest == ".so" || rest == ".abi3.so") return true;
    if (StartsWith(rest, ".cpython-") && rest.size() > 12 &&
        rest.substr(rest.size() - 3) == ".so") {
      return true;
    }
  }
  return false;
}

}  // namespace

SystemRole RoleOf(std::string_view soname, std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);  // all of it if there is none
  const std::string_view name = soname.empty() ? file : soname;
  if (name == "[vdso]" || IsModule(name)) return SystemRole::kPassesOn;
  if (IsInterpreter(name)) return SystemRole::kInterpreter;
  const std::string_view stem = StemOf(name);
  const SystemRole role = FindLibrary(stem);
  return role != SystemRole::kNone ? role : FindLibrary(WithoutSuffix(stem));
}

}  // namespace cuguest::audit
