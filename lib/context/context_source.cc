// SPDX-License-Identifier: Apache-2.0

#include "cuguest/context_source.h"

CUGUEST_BEGIN_NAMESPACE

const char* Name(ContextSource source) noexcept {
  switch (source) {
    case ContextSource::kStream:
      return "the stream";
    case ContextSource::kPointer:
      return "the pointer";
    case ContextSource::kCurrent:
      return "the current context";
    case ContextSource::kPrimary:
      return "the primary context";
    case ContextSource::kCreated:
      return "the primary context, created";
  }
  return "nowhere";
}

CUGUEST_END_NAMESPACE
