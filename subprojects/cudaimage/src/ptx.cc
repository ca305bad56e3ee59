// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX. The driver's compiler has an answer to nearly any text. Looked for is what it takes and
// should not: a NUL in the middle, where it stops reading, and a function of the module's own
// that is declared and never defined, which crashes the driver when a kernel that calls it is
// loaded (measured with 580.159.04).

#include "cudaimage/ptx.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "cudaimage/contents.h"

CUDAIMAGE_BEGIN_NAMESPACE
namespace {

// A name is followed by the parameters, or by nothing that belongs to the entry.
bool IsName(std::string_view token) {
  return !token.empty() && PtxTokens::IsWord(token[0]) && token[0] != '.';
}

// 0 if it is not understood.
unsigned ReadCount(PtxTokens* tokens) {
  unsigned long long value = 0;
  if (!ReadInteger(tokens->Next(), &value) || value > 0xffffffff) return 0;
  return static_cast<unsigned>(value);
}

// "64", "64, 2" or "64, 2, 1". Zeros if one of them is not understood.
PtxEntry::Sizes ReadSizes(PtxTokens* tokens) {
  PtxEntry::Sizes sizes = {ReadCount(tokens), 1, 1};
  for (std::size_t i = 1; i < sizes.size() && tokens->Peek() == ","; ++i) {
    tokens->Next();
    sizes[i] = ReadCount(tokens);
  }
  return sizes[0] != 0 && sizes[1] != 0 && sizes[2] != 0 ? sizes : PtxEntry::Sizes{};
}

// One parameter, from behind ".param" to behind its "," or ")", which is returned:
//   .align 16 .b8 name[32]   or   .u64 .ptr .global .align 4 name
std::string_view ReadParameter(PtxTokens* tokens, PtxParameter* parameter) {
  std::size_t element = 0;
  std::size_t count = 1;
  std::string_view token = tokens->Next();
  for (; token != "," && token != ")" && !token.empty(); token = tokens->Next()) {
    if (token == ".align") {
      const std::size_t alignment = ReadCount(tokens);
      if (element == 0) parameter->alignment = alignment;  // behind the type it means nothing here
    } else if (token == "[") {
      count = ReadCount(tokens);
      if (tokens->Peek() != "]") count = 0;
    } else if (element == 0) {
      element = SizeOfPtxType(token);
    }
  }
  parameter->size = element * count;
  parameter->alignment = std::max({parameter->alignment, element, std::size_t{1}});
  return token;
}

// From behind "(" to behind ")". Whether they are understood.
bool ReadParameters(PtxTokens* tokens, std::vector<PtxParameter>* parameters) {
  std::string_view token = tokens->Next();
  while (token == ".param" || token == ",") {
    if (token == ",") {
      token = tokens->Next();
      continue;
    }
    PtxParameter parameter;
    token = ReadParameter(tokens, &parameter);
    if (parameter.size == 0) return false;
    parameters->push_back(parameter);
  }
  return token == ")";
}

// The functions of the module's own: without .extern, .visible or .weak.
class LocalFunctions {
 public:
  // From behind ".func" to the end of its head; `linkage` is what stands before it.
  void Read(std::string_view linkage, PtxTokens* tokens) {
    const bool local = linkage != ".extern" && linkage != ".visible" && linkage != ".weak";
    std::string_view name;
    int depth = 0;
    for (std::string_view token = tokens->Next(); !token.empty(); token = tokens->Next()) {
      if (token == "(") ++depth;
      if (token == ")") --depth;
      if (depth == 0 && name.empty() && IsName(token)) name = token;
      if (token == "{") return static_cast<void>(defined_.insert(name));
      if (token == ";" && local) declared_.insert(name);
      if (token == ";") return;
    }
  }

  // From behind ".alias": the first name is defined by it.
  void ReadAlias(PtxTokens* tokens) { defined_.insert(tokens->Next()); }

  // One that is nowhere defined; empty if there is none.
  std::string_view Missing() const {
    for (const std::string_view name : declared_) {
      if (defined_.count(name) == 0) return name;
    }
    return {};
  }

 private:
  std::set<std::string_view> declared_;
  std::set<std::string_view> defined_;
};

// The entries of one text. One may be declared in front of its definition, which alone has the
// directives; one that is declared .extern is of another module.
class Entries {
 public:
  // From behind ".entry".
  void Read(std::string_view linkage, PtxTokens* tokens) {
    const PtxEntry entry = ReadPtxEntry(tokens);
    if (!IsName(entry.name) || (!entry.has_body && linkage == ".extern")) return;
    const auto& [x, y, z] = entry.required_block;
    KernelContents& kernel = kernels_[entry.name];
    if (entry.has_body) kernel.block = RequiredBlock{x, y, z};
    kernel.parameters = entry.is_understood ? static_cast<std::uint32_t>(entry.parameters.size())
                                            : KernelContents::kUnknown;
  }

  void AddTo(CodeContents* contents) const {
    for (const auto& [name, kernel] : kernels_) contents->AddKernel(std::string(name), kernel);
  }

 private:
  std::map<std::string_view, KernelContents> kernels_;
};

}  // namespace

std::size_t SizeOfPtxType(std::string_view token) {
  constexpr std::string_view kKinds = "busf";
  if (token.size() < 3 || token[0] != '.' || kKinds.find(token[1]) == std::string_view::npos) {
    return 0;
  }
  unsigned long long bits = 0;
  if (!ReadInteger(token.substr(2), &bits)) return 0;
  return bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

PtxEntry ReadPtxEntry(PtxTokens* tokens) {
  PtxEntry entry;
  entry.name = tokens->Next();
  entry.is_understood = IsName(entry.name);
  if (tokens->Peek() == "(") {
    tokens->Next();
    entry.is_understood = ReadParameters(tokens, &entry.parameters) && entry.is_understood;
  }
  for (auto token = tokens->Next(); token != ";" && !token.empty(); token = tokens->Next()) {
    entry.has_body = token == "{";
    if (entry.has_body) break;
    if (token == ".pragma") {
      while (tokens->Peek() != ";" && !tokens->Peek().empty()) tokens->Next();
      tokens->Next();
    }
    if (token == ".maxntid") entry.max_block = ReadSizes(tokens);
    if (token == ".reqntid") entry.required_block = ReadSizes(tokens);
    if (token == ".reqnctapercluster") entry.required_cluster = ReadSizes(tokens);
    if (token == ".explicitcluster") entry.must_have_cluster = true;
    if (token == ".maxclusterrank") entry.max_cluster_rank = ReadCount(tokens);
    if (token == ".maxnreg") entry.max_registers = ReadCount(tokens);
  }
  return entry;
}

bool IsPtx(const Bytes& bytes) { return PtxTokens(bytes.text()).Next() == ".version"; }

Status ReadPtx(const Bytes& bytes, CodeContents* contents) {
  const std::string_view text = bytes.text().substr(0, bytes.text().find_last_not_of('\0') + 1);
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Damaged(bytes, nul, "a NUL within the text of PTX, where the driver would stop reading");
  }
  PtxTokens tokens(text);
  LocalFunctions functions;
  Entries entries;
  std::string_view before;
  for (std::string_view token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token == ".func") functions.Read(before, &tokens);
    if (token == ".alias") functions.ReadAlias(&tokens);
    if (token == ".entry") entries.Read(before, &tokens);
    if (token == ".target") contents->AddTarget("PTX for " + std::string(tokens.Next()));
    before = token;
  }
  entries.AddTo(contents);
  const std::string_view missing = functions.Missing();
  if (missing.empty()) return Status();
  const auto at = static_cast<std::uint64_t>(missing.data() - text.data());
  return Damaged(bytes, at, "function \"", std::string(missing),
                 "\" is declared and nowhere defined: if it is of another module, declare it "
                 ".extern");
}

CUDAIMAGE_END_NAMESPACE
