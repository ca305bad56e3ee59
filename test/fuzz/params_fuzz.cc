// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ParamBuffer that is given parameters of any size and alignment, against a model that keeps them
// one by one.

#include <algorithm>
#include <cstring>
#include <vector>

#include "cuguest/objects/param_buffer.h"
#include "test/fuzz/input.h"

namespace {

using cuguest::ParamBuffer;

struct Parameter {
  cuguest::Kernel::Parameter place;
  std::vector<unsigned char> bytes;
};

// As a kernel's parameters lie (PTX ISA, "Parameter State Space").
std::size_t EndOf(const std::vector<Parameter>& parameters) {
  return parameters.empty() ? 0 : parameters.back().place.offset + parameters.back().place.size;
}

bool IsPowerOfTwo(std::size_t number) { return number != 0 && (number & (number - 1)) == 0; }

void Compare(const ParamBuffer& buffer, const std::vector<Parameter>& model) {
  FUZZ_CHECK(buffer.parameters().size() == model.size());
  FUZZ_CHECK(buffer.size() == EndOf(model));
  FUZZ_CHECK(buffer.size() <= ParamBuffer::kMaxBytes);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const auto& place = model[i].place;
    FUZZ_CHECK(buffer.parameters()[i] == place);
    FUZZ_CHECK(std::memcmp(buffer.data() + place.offset, model[i].bytes.data(), place.size) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuguest_fuzz::Input input(data, size);
  ParamBuffer buffer;
  std::vector<Parameter> model;
  bool can_be_packed = true;
  while (!input.empty()) {
    const std::uint8_t kind = input.Byte();
    if (kind == 0xff) {
      buffer.Clear();
      model.clear();
      can_be_packed = true;
      continue;
    }
    // Mostly what types have; now and then anything.
    const std::size_t alignment = kind < 0xe0 ? std::size_t{1} << (kind & 7) : input.Word();
    const std::size_t bytes =
        kind < 0xc0 ? alignment * (1 + input.Below(64)) : input.Word() >> (kind & 15);
    std::vector<unsigned char> value(std::min<std::size_t>(bytes, ParamBuffer::kMaxBytes + 1));
    for (unsigned char& byte : value) byte = static_cast<unsigned char>(model.size() + bytes);
    const bool is_type = bytes != 0 && IsPowerOfTwo(alignment) && bytes % alignment == 0;
    const std::size_t offset = is_type ? (EndOf(model) + alignment - 1) / alignment * alignment : 0;
    const bool fits = is_type && offset + bytes <= ParamBuffer::kMaxBytes;
    const absl::Status status = buffer.AddBytes(value.data(), bytes, alignment);
    FUZZ_CHECK(status.ok() == fits);
    if (!status.ok()) {
      FUZZ_CHECK(status.code() ==
                 (is_type ? absl::StatusCode::kOutOfRange : absl::StatusCode::kInvalidArgument));
      continue;
    }
    model.push_back({{offset, bytes}, std::move(value)});
    can_be_packed = can_be_packed && alignment <= 16;
    FUZZ_CHECK(buffer.can_be_packed() == can_be_packed);
  }
  Compare(buffer, model);
  return 0;
}
