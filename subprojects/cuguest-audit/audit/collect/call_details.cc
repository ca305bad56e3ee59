// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/call_details.h"

#include <cstddef>

#include "audit/collect/argument.h"

namespace cuguest::audit {
namespace {

std::size_t SizeOfDetail(char letter) {
  return letter == 'D' || letter == 'S' || letter == 'v' || letter == 'i' ? 4 : 8;
}

}  // namespace

CallDetails::CallDetails(const ReportedCall& call) {
  ForEachArgument(call.info->rule->arguments, call, SizeOfDetail,
                  [&](char letter, const void* at) { Take(letter, at, call.result == 0); });
}

void CallDetails::Take(char letter, const void* at, bool is_done) {
  switch (letter) {
    case 'C':
      handle = meant = ReadArgument<const void*>(at);
      break;
    case 'D':
      device = ReadArgument<int>(at);
      break;
    case 'S':
      setting = ReadArgument<int>(at);
      break;
    case 'V':
      value = ReadArgument<std::uint64_t>(at);
      break;
    case 'v':
      value = ReadArgument<std::uint32_t>(at);
      break;
    case 'M':
      mode = ReadArgument<const int*>(at);
      break;
    case 'c':
    case 'Q':
    case 'q':
      if (const auto* out = ReadArgument<const void*>(at); out != nullptr && is_done) {
        TakeAnswer(letter, out);
      }
      break;
    default:
      break;
  }
}

void CallDetails::TakeAnswer(char letter, const void* out) {
  if (letter == 'c') meant = ReadArgument<const void*>(out);
  if (letter == 'Q') value = ReadArgument<std::uint64_t>(out);
  if (letter == 'q') value = ReadArgument<std::uint32_t>(out);
}

}  // namespace cuguest::audit
