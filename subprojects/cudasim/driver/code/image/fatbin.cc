// SPDX-License-Identifier: Apache-2.0

#include "driver/code/image/fatbin.h"

#include <cstdint>
#include <cstring>

namespace cudasim::driver {
namespace {

// The headers, as cuobjdump shows them and as the containers of nvcc have them.
struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;  // of what follows the header
};
constexpr char kMagic[] = "\x50\xed\x55\xba";  // little-endian

struct MemberHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_size;
  std::uint64_t size;  // of what follows the header, with padding
  std::uint32_t compressed_size;
  std::uint32_t options;
  std::uint32_t code_version;
  std::uint32_t architecture;
  std::uint64_t identifier;
  std::uint64_t flags;
};
constexpr std::uint16_t kPtx = 1;
constexpr std::uint16_t kCubin = 2;

FatbinMember::Kind KindOf(const MemberHeader& header) {
  if (header.kind == kPtx) return FatbinMember::Kind::kPtx;
  return header.kind == kCubin ? FatbinMember::Kind::kCubin : FatbinMember::Kind::kOther;
}

// The first one of `rest`, which is left behind it.
bool ReadMember(std::string_view* rest, FatbinMember* member) {
  MemberHeader header;
  if (rest->size() < sizeof(header)) return false;
  std::memcpy(&header, rest->data(), sizeof(header));
  if (header.header_size < sizeof(header) || header.header_size > rest->size() ||
      header.size > rest->size() - header.header_size || header.compressed_size > header.size) {
    return false;
  }
  member->kind = KindOf(header);
  member->architecture = static_cast<int>(header.architecture);
  member->is_compressed = header.compressed_size != 0;
  member->data = rest->substr(header.header_size, header.size);
  member->whole = rest->substr(0, header.header_size + header.size);
  rest->remove_prefix(member->whole.size());
  return true;
}

Header ReadHeader(const void* image) {
  Header header;
  std::memcpy(&header, image, sizeof(header));
  return header;
}

}  // namespace

// A text that is shorter than a magic number differs in an earlier byte.
bool IsFatbin(const void* image) {
  return std::strncmp(static_cast<const char*>(image), kMagic, 4) == 0;
}

bool ReadFatbin(const void* image, std::vector<FatbinMember>* members) {
  const Header header = ReadHeader(image);
  if (header.header_size < sizeof(header)) return false;
  std::string_view rest(static_cast<const char*>(image) + header.header_size, header.size);
  while (!rest.empty()) {
    FatbinMember member;
    if (!ReadMember(&rest, &member)) return false;
    members->push_back(member);
  }
  return true;
}

std::string_view FatbinHeaderOf(const void* image) {
  return {static_cast<const char*>(image), sizeof(Header)};
}

}  // namespace cudasim::driver
