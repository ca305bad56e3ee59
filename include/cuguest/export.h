// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// export.h                                                              tier: 0
// -----------------------------------------------------------------------------
//
// Symbol visibility and the versioned namespace.
//
// `CUGUEST_API` is empty in a static build (`CUGUEST_STATIC`, which travels with
// the Meson, pkg-config and CMake dependency): a library that embeds cuguest
// must not re-export it, or two embedders in one process would silently share
// one copy's statics. test/embed/ asserts it.

#ifndef CUGUEST_EXPORT_H_
#define CUGUEST_EXPORT_H_

#if defined(CUGUEST_STATIC)
#define CUGUEST_API
#else
#define CUGUEST_API [[gnu::visibility("default")]]
#endif

#define CUGUEST_BEGIN_NAMESPACE \
  namespace cuguest {           \
  inline namespace v0 {
#define CUGUEST_END_NAMESPACE \
  } /* inline namespace v0 */ \
  } /* namespace cuguest */

#endif  // CUGUEST_EXPORT_H_
