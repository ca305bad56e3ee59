// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the collector has its calls from: one of several interfaces of a driver to tools.

#ifndef CUGUEST_AUDIT_COLLECT_SOURCE_H_
#define CUGUEST_AUDIT_COLLECT_SOURCE_H_

#include <cstddef>

namespace cuguest::audit {

struct Source {
  const char* name;  // as kSourceVariable has it
  // Begins to report calls to TheCollector(). False if that is not possible: `why`, of `size`
  // bytes, is then a sentence for people, or empty where no one would expect the source, with the
  // name of the tool that has the place if there is one.
  bool (*start)(char* why, std::size_t size);
  // What it cannot see, a line each, for people; ends with a null.
  const char* const* blind_spots;
};

// Whether the process's driver is cudasim. CUPTI and the Sanitizer API ask a driver for tables that
// it has not: where no other library is named in their place, they are not tried.
bool IsSimulated();

extern const Source kCudasimSource;
extern const Source kCuptiSource;
extern const Source kSanitizerSource;

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_SOURCE_H_
