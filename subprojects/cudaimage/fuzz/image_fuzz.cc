// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The readers of device images: any bytes are read, or refused with a text, and nothing outside of
// them is.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "cudaimage/contents.h"
#include "cudaimage/cubin.h"
#include "cudaimage/fatbin.h"

namespace {

using namespace cudaimage;  // NOLINT

void Read(const Bytes& bytes) {
  CodeKind kind = CodeKind::kPtx;
  if (!RecogniseCode(bytes, &kind).ok()) return;
  CodeContents contents;
  static_cast<void>(ReadCode(kind, bytes, &contents));
  static_cast<void>(HasLtoIr(kind, bytes));
}

// Each reader whose beginning the bytes have, also where they are recognised as something else.
void ReadAsEach(const Bytes& bytes) {
  CodeContents contents;
  if (IsPtx(bytes)) static_cast<void>(ReadPtx(bytes, &contents));
  if (IsElf(bytes)) static_cast<void>(ReadHostObject(bytes, &contents));
  if (IsArchive(bytes)) static_cast<void>(ReadArchive(bytes, &contents));
  if (IsDeviceElf(bytes)) {
    static_cast<void>(ReadDeviceElf(bytes, &contents));
    Cubin cubin;
    static_cast<void>(Cubin::Read(bytes, &cubin));
  }
  if (!IsFatbin(bytes)) return;
  static_cast<void>(ReadFatbin(bytes, &contents));
  std::optional<FatbinEntry> chosen;
  for (const bool only_ptx : {false, true}) {
    if (!ChooseEntry(bytes, 90, only_ptx, &chosen).ok() || !chosen.has_value()) continue;
    UnpackedBytes storage;
    Bytes unpacked;
    if (UnpackEntry(*chosen, &storage, &unpacked).ok()) Read(unpacked);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes(data, size);
  Read(bytes);
  ReadAsEach(bytes);
  return 0;
}
