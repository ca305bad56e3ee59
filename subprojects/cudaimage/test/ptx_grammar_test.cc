// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader of PTX beside ptxas: entries of a small grammar are read as text and, compiled, as a
// cubin, and both must say the same of them. What ptxas refuses may be read as anything.
//
//   ptx_grammar_test PTXAS     77, skipped, without one

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cudaimage/contents.h"
#include "cudaimage/cubin.h"
#include "cudaimage/ptx.h"

namespace {

using namespace cudaimage;

constexpr char kHead[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

int failures = 0;
int compared = 0;

void Fail(const std::string& text, const std::string& what) {
  std::printf("%s\n--- %s\n", text.c_str(), what.c_str());
  ++failures;
}

// Empty if ptxas refuses `text`.
std::string Compile(const std::string& ptxas, const std::string& text) {
  std::string directory = "/tmp/ptx_grammar_XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) std::abort();
  const std::string source = directory + "/t.ptx";
  const std::string cubin = directory + "/t.cubin";
  std::ofstream(source) << text;
  const std::string command =
      "'" + ptxas + "' -arch=sm_90 " + source + " -o " + cubin + " >/dev/null 2>&1";
  std::string compiled;
  if (std::system(command.c_str()) == 0) {
    std::ifstream file(cubin, std::ios::binary);
    compiled.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::remove(source.c_str());
  std::remove(cubin.c_str());
  std::remove(directory.c_str());
  return compiled;
}

std::string BlockText(const RequiredBlock& block) {
  return std::to_string(block.x) + " x " + std::to_string(block.y) + " x " +
         std::to_string(block.z);
}

// (offset, size) of each parameter, as a cubin says.
using Places = std::vector<std::pair<std::size_t, std::size_t>>;

Places PlacesIn(const Cubin& cubin, const std::string& kernel) {
  Places places;
  for (const ElfSection& section : cubin.file.sections) {
    if (section.name != ".nv.info." + kernel) continue;
    const auto read = [&](CubinAttribute attribute, const Bytes& record) {
      if (attribute != CubinAttribute::kParameter || !record.Has(0, 12)) return Status();
      const auto ordinal = record.At<std::uint16_t>(4);
      if (places.size() <= ordinal) places.resize(ordinal + 1U);
      places[ordinal] = {record.At<std::uint16_t>(6), record.At<std::uint32_t>(8) >> 18};
      return Status();
    };
    static_cast<void>(ForEachRecord(section.bytes, read));
  }
  return places;
}

Places PlacesIn(const PtxEntry& entry) {
  Places places;
  std::size_t end = 0;
  for (const PtxParameter& parameter : entry.parameters) {
    const std::size_t at =
        (end + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    places.emplace_back(at, parameter.size);
    end = at + parameter.size;
  }
  return places;
}

void CompareParameters(const std::string& text, const Cubin& cubin) {
  PtxTokens tokens(text);
  for (std::string_view token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token != ".entry") continue;
    const PtxEntry entry = ReadPtxEntry(&tokens);
    if (!entry.has_body) continue;
    const std::string name(entry.name);
    if (!entry.is_understood) Fail(text, "the parameters of " + name + " are not understood");
    if (PlacesIn(entry) != PlacesIn(cubin, name)) Fail(text, "the parameters of " + name);
  }
}

// Whether ptxas takes it. Then both readers must agree.
bool Compare(const std::string& ptxas, const std::string& body) {
  const std::string text = kHead + body;
  const std::string compiled = Compile(ptxas, text);
  CodeContents of_ptx;
  const Status read = ReadCode(CodeKind::kPtx, Bytes(text), &of_ptx);
  if (compiled.empty()) return false;
  if (!read.ok()) Fail(text, "refused: " + std::string(read.message()));
  CodeContents of_cubin;
  if (!ReadCode(CodeKind::kCubin, Bytes(compiled), &of_cubin).ok()) Fail(text, "its cubin");
  for (const auto& [name, kernel] : of_cubin.kernels) {
    const auto found = of_ptx.kernels.find(name);
    ++compared;
    if (found == of_ptx.kernels.end()) {
      Fail(text, name + " is not found");
      continue;
    }
    const auto& [block, parameters] = found->second;
    if (!(block == kernel.block)) {
      Fail(text, name + " is read as " + BlockText(block) + " and is " + BlockText(kernel.block));
    }
    if (parameters != kernel.parameters) {
      Fail(text, name + " is read to take " + std::to_string(parameters) +
                     " parameters, and takes " + std::to_string(kernel.parameters));
    }
  }
  if (of_ptx.kernels.size() != of_cubin.kernels.size()) Fail(text, "the number of kernels");
  Cubin cubin;
  if (Cubin::Read(Bytes(compiled), &cubin).ok()) CompareParameters(text, cubin);
  return true;
}

// What is written of an entry, at random and the same in every run.
class Grammar {
 public:
  std::string Entry(int number) {
    const std::string name = Pick({"k", "_k", "$k", "%k", "k$_", "entry"}) + std::to_string(number);
    const std::string params = Parameters();
    const std::string linkage =
        Pick({"", ".visible ", ".weak\n", ".visible/* .entry no() .reqntid 3 */"});
    std::string text;
    if (Below(6) == 0) text += linkage + ".entry" + Gap() + name + params + Space() + ";";
    text += linkage + ".entry" + Gap() + name + Space() + params + Directives();
    return text + Space() + "{" + Pick({"", ".pragma \".entry no() .reqntid 5 {\";"}) + " ret; }\n";
  }

  std::string Integer(unsigned value) {
    static constexpr char kDigits[] = "0123456789abcdef";
    if (value == 32 && Below(3) == 0) return "WARP_SZ";
    const unsigned base = std::vector<unsigned>{10, 16, 8, 2}[Below(4)];
    std::string digits;
    for (unsigned rest = value; rest != 0; rest /= base) digits.insert(0, 1, kDigits[rest % base]);
    const std::string prefix = base == 16  ? Pick({"0x", "0X"})
                               : base == 8 ? std::string("0")
                               : base == 2 ? Pick({"0b", "0B"})
                                           : std::string();
    return prefix + digits + Pick({"", "", "U"});
  }

 private:
  unsigned Below(unsigned count) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<unsigned>(state_ >> 33) % count;
  }
  std::string Pick(const std::vector<std::string>& of) {
    return of[Below(static_cast<unsigned>(of.size()))];
  }
  std::string Space() { return Pick({"", "", " ", "\n", "\t", "/*}*/", " // ;\n"}); }
  std::string Gap() { return Pick({" ", "\n", "\t ", "/**/", " //x\r\n"}); }

  std::string Sizes() {
    const std::vector<unsigned> values = {1, 2, 3, 7, 8};
    std::string text = Integer(std::vector<unsigned>{1, 5, 16, 32, 33}[Below(5)]);
    for (unsigned i = Below(3); i > 0; --i) {
      text += Space() + "," + Space() + Integer(values[Below(5)]);
    }
    return text;
  }

  std::string Parameter(int number) {
    const std::string name = "p" + std::to_string(number);
    const std::string type = Pick({".u8", ".s16", ".b32", ".f32", ".u64", ".f64", ".f16"});
    switch (Below(5)) {
      case 0:
        return ".param" + Gap() + ".align" + Gap() + Integer(1U << Below(5)) + " .b8 " + name +
               "[" + Integer(1 + Below(40)) + "]";
      case 1:
        return ".param.u64 .ptr" + Pick({"", ".global", " .shared"}) + " .align " +
               Integer(1U << Below(5)) + " " + name;
      case 2:
        return ".param" + type + " " + name + Space() + "[" + Space() + Integer(1 + Below(9)) + "]";
      default:
        return ".param " + type + Gap() + name;
    }
  }

  std::string Parameters() {
    std::string text;
    const int count = static_cast<int>(Below(4));
    if (count == 0) return Pick({"", "()", "(\n)"});
    for (int i = 0; i < count; ++i) text += (i > 0 ? "," : "") + Space() + Parameter(i);
    return "(" + text + Space() + ")";
  }

  std::string Directives() {
    std::string text;
    const bool is_required = Below(3) != 0;
    for (unsigned i = Below(4); i > 0; --i) {
      text += Space();
      switch (Below(5)) {
        case 0:
          text += ".maxnreg" + Gap() + Integer(32) + " ";
          break;
        case 1:
          text += ".pragma \"nounroll\"" + Pick({"", ", \"x;y\""}) + ";";
          break;
        case 2:
          text += ".reqnctapercluster " + Integer(2) + Space() + "," + Integer(1 + Below(2)) + " ";
          break;
        default:
          text += (is_required ? ".reqntid" : ".maxntid") + Gap() + Sizes() + " ";
      }
    }
    return text;
  }

  std::uint64_t state_ = 2026;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]).empty()) {
    std::printf("skipped: there is no ptxas to compare with\n");
    return 77;
  }
  const std::string ptxas = argv[1];
  if (!Compare(ptxas, ".entry k() { ret; }\n")) {
    std::printf("skipped: %s does not compile for sm_90\n", argv[1]);
    return 77;
  }
  Grammar grammar;
  int refused = 0;
  for (int file = 0; file < 60; ++file) {
    std::string text;
    for (int i = 0; i < 20; ++i) text += grammar.Entry(i);
    if (!Compare(ptxas, text)) {
      Fail(text, "ptxas refuses it");
      ++refused;
    }
  }
  // Each by itself, because some are refused.
  for (const char* size : {"08",
                           "0x",
                           "0b",
                           "0b2",
                           "32u",
                           "-1",
                           "+1",
                           "1.0",
                           "N",
                           "(32)",
                           "16*2",
                           "1<<5",
                           "0",
                           "4294967328",
                           "'a'",
                           "0xg",
                           "32UU",
                           "32 2",
                           "32,",
                           ",32",
                           "1,1,1,1",
                           "32 .reqntid 64",
                           "0x20 ,0b10U, 01",
                           "WARP_SZ,WARP_SZ",
                           "warp_sz",
                           "WARP_SZU",
                           "0U",
                           "00",
                           "1e2",
                           "0d1",
                           "1024"}) {
    Compare(ptxas, std::string(".entry k() .reqntid ") + size + " { ret; }\n");
  }
  for (const char* text :
       {".extern .entry e();\n.entry k() { ret; }\n", ".entry e();\n.entry k() { ret; }\n",
        ".func f();\n.func g() { ret; }\n.alias f, g;\n.entry k() { call f; ret; }\n",
        ".entry k() { ret; }\n.entry k();\n", ".entry k.reqntid 5 { ret; }\n",
        ".entry k(.param .b8 p[2][3]) { ret; }\n", ".entry k(.param .b8 p[4*8]) { ret; }\n",
        ".entry k(.param .u32 .align 8 p, .param .u8 q) { ret; }\n",
        ".func f() .noreturn { exit; }\n.entry k() { ret; }\n"}) {
    Compare(ptxas, text);
  }
  std::printf("%d entries compared, %d failures\n", compared, failures);
  return failures == 0 && refused == 0 ? 0 : 1;
}
