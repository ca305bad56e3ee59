// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Real device code: every image in a file, whatever the file is, given to the readers.

#ifndef CUDAIMAGE_TEST_DEVICE_CODE_H_
#define CUDAIMAGE_TEST_DEVICE_CODE_H_

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cudaimage/contents.h"

namespace cudaimage_test {

using Span = std::string_view;

template <typename T>
T ReadAt(Span bytes, std::size_t offset) {
  T value = {};
  if (offset <= bytes.size() && sizeof(T) <= bytes.size() - offset) {
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  }
  return value;
}
inline Span Part(Span bytes, std::size_t offset, std::size_t size) {
  return offset <= bytes.size() ? bytes.substr(offset, size) : Span();
}

// A file that is paged in as it is read, and never held as a whole.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat found = {};
    if (file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size > 0) {
      size_ = static_cast<std::size_t>(found.st_size);
      memory_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (memory_ != MAP_FAILED) munmap(memory_, size_);
  }

  // Empty if it cannot be read.
  Span bytes() const {
    return memory_ != MAP_FAILED ? Span(static_cast<const char*>(memory_), size_) : Span();
  }
  // Gives back the pages of what has been read.
  void Forget(Span part) const {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
    const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

 private:
  void* memory_ = MAP_FAILED;
  std::size_t size_ = 0;
};

// The decompressors that nvcc's formats need, of the machine. Empty if it lacks them.
inline std::string Decompressed(Span packed, std::size_t size, bool zstd) {
  using Lz4 = int (*)(const char*, char*, int, int);
  using Zstd = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
  void* const library = dlopen(zstd ? "libzstd.so.1" : "liblz4.so.1", RTLD_NOW);
  void* const symbol = library != nullptr
                           ? dlsym(library, zstd ? "ZSTD_decompress" : "LZ4_decompress_safe")
                           : nullptr;
  if (symbol == nullptr || size > (std::size_t{1} << 31)) return "";
  std::string bytes(size, '\0');
  const std::size_t written =
      zstd ? reinterpret_cast<Zstd>(symbol)(bytes.data(), size, packed.data(), packed.size())
           : static_cast<std::size_t>(reinterpret_cast<Lz4>(symbol)(packed.data(), bytes.data(),
                                                                    static_cast<int>(packed.size()),
                                                                    static_cast<int>(size)));
  return written == size ? bytes : "";
}

struct ElfPart {
  std::string_view name;
  Span bytes;
};

inline std::vector<ElfPart> SectionsOf(Span elf) {
  const auto header = ReadAt<Elf64_Ehdr>(elf, 0);
  const auto first = ReadAt<Elf64_Shdr>(elf, header.e_shoff);
  const std::size_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
  const std::size_t names = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first.sh_link;
  const auto section = [&](std::size_t i) {
    return ReadAt<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const Span strings = Part(elf, section(names).sh_offset, section(names).sh_size);
  std::vector<ElfPart> parts;
  for (std::size_t i = 1; header.e_shoff != 0 && i < count; ++i) {
    const Elf64_Shdr place = section(i);
    const Span name = Part(strings, place.sh_name, strings.size());
    const std::size_t size = place.sh_type == SHT_NOBITS ? 0 : place.sh_size;
    parts.push_back({name.substr(0, name.find('\0')), Part(elf, place.sh_offset, size)});
  }
  return parts;
}

inline bool IsElfFile(Span bytes) { return bytes.substr(0, SELFMAG) == ELFMAG; }
inline bool IsCubinFile(Span bytes) {
  return IsElfFile(bytes) && ReadAt<Elf64_Ehdr>(bytes, 0).e_machine == EM_CUDA;
}

// What made a cubin: "ptxas 12.4", as far as it tells.
inline std::string ToolOf(Span cubin) {
  const auto header = ReadAt<Elf64_Ehdr>(cubin, 0);
  const std::string abi = "ABI " + std::to_string(header.e_ident[EI_ABIVERSION]);
  for (const ElfPart& part : SectionsOf(cubin)) {
    constexpr std::string_view kRelease = "release ";
    const std::size_t at = part.bytes.find(kRelease);
    if (part.name != ".note.nv.tkinfo" || at == Span::npos) continue;
    const Span release = part.bytes.substr(at + kRelease.size());
    return "CUDA " +
           std::string(release.substr(0, release.find_first_of(std::string_view(",\0", 2)))) +
           ", " + abi;
  }
  const unsigned version = header.e_version;  // 124 is 12.4, where it is one at all
  if (version >= 60 && version < 1000) {
    return "CUDA " + std::to_string(version / 10) + "." + std::to_string(version % 10) + ", " + abi;
  }
  return "of no name, " + abi;
}

struct DeviceCodeCounts {
  int files = 0;
  int images = 0;                      // given to the readers
  int kernels = 0;                     // that they name
  int counted = 0;                     // whose parameters their mangled names count, too
  int uncounted = 0;                   // that do not say how many parameters they take
  int incomplete = 0;                  // that do not name all of theirs
  std::map<std::string, int> entries;  // of containers too, by kind or tool
  std::size_t bytes = 0;
  std::vector<std::string> refused;
};

// How many parameters a kernel takes by its mangled name; -1 of one that is not mangled.
inline int ParametersByName(const std::string& mangled) {
  char* const demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr);
  const std::string text = demangled != nullptr ? demangled : "";
  std::free(demangled);
  if (text.empty() || text.back() != ')') return -1;
  int depth = 0;
  int commas = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    const char letter = text[at];
    if (letter == '>' && at > 0 && text[at - 1] == '-') continue;  // of a decltype
    if (letter == ')' || letter == '>' || letter == ']' || letter == '}') ++depth;
    if (letter == '(' || letter == '<' || letter == '[' || letter == '{') --depth;
    if (letter == ',' && depth == 1) ++commas;
    if (depth == 0) return at + 2 == text.size() ? 0 : commas + 1;
  }
  return -1;
}

// DeviceCodeWalk
//
// Every image in the files that it is given: in the host's libraries, programs and objects, in
// archives of them, and as files of their own.
class DeviceCodeWalk {
 public:
  // `wanted` says whether the next image is looked at.
  explicit DeviceCodeWalk(std::function<bool(std::size_t bytes)> wanted)
      : wanted_(std::move(wanted)) {}

  const DeviceCodeCounts& counts() const { return counts_; }

  void File(const std::string& path) {
    const MappedFile file(path);
    file_ = &file;
    path_ = path;
    const int before = counts_.images;
    Any(file.bytes(), true);
    if (counts_.images > before) ++counts_.files;
  }

 private:
  static constexpr std::string_view kArchive = "!<arch>\n";
  static constexpr std::uint32_t kFatbin = 0xba55ed50;

  static bool IsFatbin(Span bytes) { return ReadAt<std::uint32_t>(bytes, 0) == kFatbin; }

  // `whole`: a file of its own, and not a member of an archive.
  void Any(Span bytes, bool whole) {
    if (bytes.substr(0, kArchive.size()) == kArchive) return Archive(bytes);
    if (IsCubinFile(bytes)) return Image(bytes);
    if (IsElfFile(bytes)) return Host(bytes);
    if (whole) Image(bytes);
  }

  void Archive(Span bytes) {
    constexpr std::size_t kHeader = 60;
    for (std::size_t at = kArchive.size(); at + kHeader <= bytes.size();) {
      const auto size = static_cast<std::size_t>(
          std::strtoull(std::string(bytes.substr(at + 48, 10)).c_str(), nullptr, 10));
      Any(Part(bytes, at + kHeader, size), false);
      at += kHeader + (size + 1) / 2 * 2;
    }
  }

  void Host(Span bytes) {
    for (const ElfPart& part : SectionsOf(bytes)) {
      if (part.name == ".nv_fatbin" || part.name == "__nv_relfatbin") Fatbins(part.bytes);
    }
  }

  // One behind the other, each at a multiple of 8.
  void Fatbins(Span bytes) {
    std::size_t at = 0;
    while (at + 16 <= bytes.size()) {
      const Span rest = bytes.substr(at);
      if (!IsFatbin(rest)) {
        at += 8;
        continue;
      }
      const std::size_t size = 16 + static_cast<std::size_t>(ReadAt<std::uint64_t>(rest, 8));
      Image(rest.substr(0, size));
      at += (size + 7) / 8 * 8;
    }
  }

  void Image(Span bytes) {
    if (!wanted_(bytes.size())) return;
    ++counts_.images;
    counts_.bytes += bytes.size();
    const std::string name = path_ + "+" + std::to_string(bytes.data() - file_->bytes().data());
    const cudaimage::Bytes image(bytes);
    cudaimage::CodeKind kind = cudaimage::CodeKind::kPtx;
    const cudaimage::Status recognised = cudaimage::RecogniseCode(image, &kind);
    if (!recognised.ok()) {
      counts_.refused.emplace_back(name + ": " + recognised.message());
      return;
    }
    cudaimage::CodeContents contents;
    const cudaimage::Status sound = cudaimage::ReadCode(kind, image, &contents);
    if (!sound.ok()) counts_.refused.emplace_back(name + ": damaged: " + sound.message());
    counts_.kernels += static_cast<int>(contents.kernels.size());
    if (!contents.names_all) ++counts_.incomplete;
    for (const auto& [kernel, said] : contents.kernels) CountParameters(name, kernel, said);
    Count(bytes);
    file_->Forget(bytes);
  }

  void CountParameters(const std::string& image, const std::string& kernel,
                       const cudaimage::KernelContents& said) {
    const int by_name = ParametersByName(kernel);
    counts_.uncounted += said.parameters == cudaimage::KernelContents::kUnknown;
    if (by_name < 0 || said.parameters == cudaimage::KernelContents::kUnknown) return;
    ++counts_.counted;
    if (static_cast<int>(said.parameters) == by_name) return;
    counts_.refused.emplace_back(image + ": " + kernel + " takes " + std::to_string(by_name) +
                                 " parameters, and is read to take " +
                                 std::to_string(said.parameters));
  }

  // By what is in it.
  void Count(Span bytes) {
    if (IsCubinFile(bytes))
      return static_cast<void>(++counts_.entries["cubin of " + ToolOf(bytes)]);
    if (!IsFatbin(bytes)) return static_cast<void>(++counts_.entries["other file"]);
    const std::size_t end = 16 + static_cast<std::size_t>(ReadAt<std::uint64_t>(bytes, 8));
    std::size_t at = ReadAt<std::uint16_t>(bytes, 6);
    while (at + 64 <= end && at + 64 <= bytes.size()) {
      const Span entry = bytes.substr(at);
      const auto header = ReadAt<std::uint32_t>(entry, 4);
      const auto payload = static_cast<std::size_t>(ReadAt<std::uint64_t>(entry, 8));
      ++counts_.entries[Entry(entry, Part(entry, header, payload))];
      if (header + payload == 0) break;
      at += header + payload;
    }
  }

  static std::string Entry(Span entry, Span payload) {
    const auto kind = ReadAt<std::uint16_t>(entry, 0);
    const auto flags = ReadAt<std::uint64_t>(entry, 40) & 0xf000;
    if (kind == 1) return flags != 0 ? "compressed PTX" : "PTX";
    if (kind == 8) return "LTO IR";
    if (kind != 2) return "entry of kind " + std::to_string(kind);
    if (flags == 0) return "cubin of " + ToolOf(payload);
    const Span packed = payload.substr(0, ReadAt<std::uint32_t>(entry, 16));
    const auto size = static_cast<std::size_t>(ReadAt<std::uint64_t>(entry, 56));
    const std::string unpacked = Decompressed(packed, size, flags == 0x8000);
    return (flags == 0x8000   ? "zstd cubin of "
            : flags == 0x2000 ? "LZ4 cubin of "
                              : "packed cubin of ") +
           (unpacked.empty() ? std::string("?") : ToolOf(unpacked));
  }

  const std::function<bool(std::size_t)> wanted_;
  const MappedFile* file_ = nullptr;
  std::string path_;
  DeviceCodeCounts counts_;
};

}  // namespace cudaimage_test

#endif  // CUDAIMAGE_TEST_DEVICE_CODE_H_
