// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ELF notes of a loaded object, in which cuguest looks for another copy of itself: any bytes.

// Its reader is a function of that file alone.
#include "lib/share/registry_home_posix.cc"  // NOLINT
#include "test/fuzz/input.h"

#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cuguest::internal;
  if (size == 0) return 0;
  const std::size_t alignment = data[0] & 1 ? 8 : 4;
  // Of a size that the sanitizer knows.
  const std::size_t count = size - 1;
  const std::unique_ptr<char[]> notes(new char[count]);
  std::memcpy(notes.get(), data + 1, count);
  // A door is where the note of a copy says. These are of a layout before the first one, whose
  // copies are not looked at.
  constexpr char kNamed[] = "cuguest";
  for (std::size_t at = sizeof(std::uint32_t); at + sizeof(kNamed) <= count; ++at) {
    if (std::memcmp(notes.get() + at, kNamed, sizeof(kNamed)) != 0) continue;
    const std::uint32_t type = 1;
    std::memcpy(notes.get() + at - sizeof(type), &type, sizeof(type));
  }
  const auto check = [](const EmbeddedCopy& copy, void*) {
    FUZZ_CHECK(copy.door == nullptr);
    return false;
  };
  FUZZ_CHECK(!VisitNotes({notes.get(), count}, alignment, {check, nullptr, ""}));
  return 0;
}
