// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/error.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "lib/core/code_table.h"
#include "lib/core/error_row.h"
#include "lib/core/error_rows.h"
#include "lib/core/string_pool.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::BytesOf;
using internal::Canonical;
using internal::ErrorRow;
using internal::kKnownErrors;
using internal::KnownError;

constexpr ErrorRow kUnrecognized = {
    -1, "CUDA_ERROR_UNRECOGNIZED", Canonical::kUnknown,
    "a code newer than cuguest; the driver's own documentation has it"};

struct PackedRow {
  std::uint16_t code;
  std::uint16_t name;  // in front of it is its Canonical, and behind it the text
};

constexpr std::size_t BytesOfAll() {
  std::size_t bytes = 0;
  for (const KnownError& error : kKnownErrors) {
    bytes += 1 + BytesOf(error.name) + BytesOf(error.text);
  }
  return bytes;
}

struct Packed {
  constexpr Packed() {
    for (std::size_t i = 0; i < std::size(kKnownErrors); ++i) {
      const KnownError& error = kKnownErrors[i];
      rows[i].code = static_cast<std::uint16_t>(error.code);
      pool.AddByte(static_cast<char>(error.canonical));
      rows[i].name = pool.Add(error.name);
      pool.Add(error.text);
    }
  }
  internal::StringPool<BytesOfAll()> pool;
  PackedRow rows[std::size(kKnownErrors)] = {};
};
constexpr Packed kPacked;

}  // namespace

namespace internal {

ErrorRow ErrorRowOf(CUresult code) noexcept {
  const int number = static_cast<int>(code);
  const PackedRow* const row = CodeTable<PackedRow>(kPacked.rows).Find(number);
  if (row == nullptr) return kUnrecognized;
  const char* const name = kPacked.pool.Known(row->name);
  return {number, name, static_cast<Canonical>(name[-1]), name + std::strlen(name) + 1};
}

}  // namespace internal

const char* ErrorName(CUresult code) noexcept { return internal::ErrorRowOf(code).name; }
const char* ErrorText(CUresult code) noexcept { return internal::ErrorRowOf(code).text; }
bool IsSticky(CUresult code) noexcept {
  return internal::ErrorRowOf(code).canonical == Canonical::kDataLoss;
}

CUGUEST_END_NAMESPACE
