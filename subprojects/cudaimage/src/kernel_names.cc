// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudaimage/kernel_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cudaimage/status.h"

CUDAIMAGE_BEGIN_NAMESPACE
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
  return declaration.substr(declaration.find_last_of(" :") + 1);
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
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::tie(a.distance, a.name) < std::tie(b.distance, b.name);
  });
  return candidates;
}

std::string Advice(std::string_view wanted, const Candidate& nearest) {
  if (!nearest.declaration.empty() && BareName(nearest.declaration) == wanted) {
    return Text("; \"", nearest.name, "\" is ", nearest.declaration,
                ": declare it extern \"C\", or ask for the mangled name");
  }
  if (nearest.distance * 2 > wanted.size()) return "";  // nothing in common
  return Text("; the nearest is \"", nearest.name, "\"");
}

std::string List(const std::vector<Candidate>& candidates) {
  std::string text = "; it has ";
  for (std::size_t i = 0; i < candidates.size() && i < kMostListed; ++i) {
    text += Text(i > 0 ? ", " : "", candidates[i].name);
  }
  if (candidates.size() > kMostListed) {
    text += Text(" and ", candidates.size() - kMostListed, " more");
  }
  return text;
}

}  // namespace

std::string ExplainMissingKernel(std::string_view wanted, const std::vector<std::string>& names) {
  const std::vector<Candidate> candidates = NearestFirst(wanted, names);
  const std::string said = "there is none of that name";
  return candidates.empty() ? said : said + Advice(wanted, candidates.front()) + List(candidates);
}

CUDAIMAGE_END_NAMESPACE
