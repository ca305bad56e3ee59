// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader of PTX: any text behind the lines that every module begins with.

#include <cstddef>
#include <cstdint>
#include <string>

#include "cudaimage/contents.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudaimage;  // NOLINT
  std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n";
  text.append(reinterpret_cast<const char*>(data), size);
  const Bytes bytes(text);
  CodeContents contents;
  if (IsPtx(bytes)) static_cast<void>(ReadPtx(bytes, &contents));
  return 0;
}
