// SPDX-License-Identifier: Apache-2.0

#include "lib/module/image_status.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/error.h"
#include "lib/context/object_text.h"
#include "lib/core/error_status.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr std::size_t kMostListed = 16;
constexpr std::size_t kMostCompared = 256;  // letters of a name; mangled ones can be very long

// "scale(float*, int)" of "_Z5scalePfi"; empty if it is not mangled.
std::string Demangled(const std::string& name) {
  if (name.compare(0, 2, "_Z") != 0) return "";
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr), &std::free);
  return text != nullptr ? text.get() : "";
}

// "scale" of "void filters::scale<float>(float*, int)".
std::string_view BareName(std::string_view declaration) {
  declaration = declaration.substr(0, declaration.find('('));
  declaration = declaration.substr(0, declaration.find('<'));
  const std::size_t space = declaration.rfind(' ');
  if (space != std::string_view::npos) declaration.remove_prefix(space + 1);
  const std::size_t colon = declaration.rfind(':');
  if (colon != std::string_view::npos) declaration.remove_prefix(colon + 1);
  return declaration;
}

// Letters to be put in, taken out or changed (Levenshtein's distance).
std::size_t Distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kMostCompared);
  b = b.substr(0, kMostCompared);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// A kernel that is there, as it may have been meant.
struct Candidate {
  std::string name;
  std::string declaration;  // of a C++ one
  std::size_t distance;
};

std::vector<Candidate> NearestFirst(std::string_view wanted,
                                    const std::vector<std::string>& names) {
  std::vector<Candidate> candidates;
  for (const std::string& name : names) {
    std::string declaration = Demangled(name);
    const std::size_t distance = std::min(
        Distance(wanted, name),
        declaration.empty() ? std::size_t{kMostCompared} : Distance(wanted, BareName(declaration)));
    candidates.push_back({name, std::move(declaration), distance});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.distance < b.distance; });
  return candidates;
}

std::string Advice(std::string_view wanted, const Candidate& nearest) {
  if (!nearest.declaration.empty() && BareName(nearest.declaration) == wanted) {
    return absl::StrCat("; ", Quoted(nearest.name), " is ", nearest.declaration,
                        ": declare it extern \"C\", or ask for the mangled name");
  }
  if (nearest.distance * 2 > wanted.size()) return "";  // nothing in common
  return absl::StrCat("; the nearest is ", Quoted(nearest.name));
}

std::string List(const std::vector<Candidate>& candidates) {
  std::string text = "; it has ";
  for (std::size_t i = 0; i < candidates.size() && i < kMostListed; ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : "", candidates[i].name);
  }
  if (candidates.size() > kMostListed) {
    absl::StrAppend(&text, " and ", candidates.size() - kMostListed, " more");
  }
  return text;
}

}  // namespace

absl::Status CodeStatus(CUresult code, std::string_view doing, std::string_view object,
                        std::string_view log) {
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.remove_suffix(1);
  if (code == CUDA_SUCCESS || log.empty()) return ToStatus(code, doing, object);
  std::string said =
      absl::StrCat(ErrorName(code), " (", static_cast<int>(code), "): ", ErrorText(code), "\n");
  said += log;
  return ErrorStatus(code, doing, object, said);
}

absl::Status NoSuchKernel(std::string_view wanted, std::string_view image,
                          const std::vector<std::string>& names) {
  const std::vector<Candidate> candidates = NearestFirst(wanted, names);
  std::string said = "there is none of that name";
  if (!candidates.empty()) {
    absl::StrAppend(&said, Advice(wanted, candidates.front()), List(candidates));
  }
  return ErrorStatus(CUDA_ERROR_NOT_FOUND, "get kernel " + Quoted(wanted), "of " + Quoted(image),
                     said);
}

absl::Status CheckName(std::string_view doing, std::string_view name) {
  if (!name.empty() && name.find('\0') == std::string_view::npos) return absl::OkStatus();
  const char* const why = name.empty() ? "the name is empty" : "the name has a NUL in it";
  return ErrorStatus(CUDA_ERROR_INVALID_VALUE, doing, Quoted(name), why);
}

std::string PlaceText(const Driver& driver, const ContextRef& context) {
  std::string text = ContextText(context.get());
  CUdevice device = 0;
  int major = 0;
  int minor = 0;
  const bool known = driver.CtxGetDevice(&device) == CUDA_SUCCESS &&
                     driver.DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                               device) == CUDA_SUCCESS &&
                     driver.DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                               device) == CUDA_SUCCESS;
  if (known) {
    absl::StrAppend(&text, " on device ", device, " (compute capability ", major, ".", minor, ")");
  }
  return text;
}

std::string LoadText(const CodeImage& image) {
  return absl::StrCat("load ", ToString(image.kind()), " ", Quoted(image.name()));
}

std::string FindVariableText(std::string_view variable, std::string_view image) {
  return "find variable " + Quoted(variable) + " of " + Quoted(image);
}

absl::StatusOr<std::vector<std::string>> ReadableNames(const CodeImage& image) {
  if (image.names_all_kernels()) return image.kernel_names();
  return ErrorStatus(CUDA_ERROR_NOT_SUPPORTED, "list the kernels of " + Quoted(image.name()), "",
                     "those of LTO IR, and of what is compressed where liblz4.so.1 or "
                     "libzstd.so.1 is missing, cannot be read off an image; a driver of CUDA 12.4 "
                     "or newer lists them");
}

std::string Quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

// Not `*new std::string`, which would allocate with the static's guard held.
const std::string& NoName() noexcept {
  alignas(std::string) static unsigned char s_place[sizeof(std::string)];
  static const std::string& s_none = *new (s_place) std::string;
  return s_none;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
