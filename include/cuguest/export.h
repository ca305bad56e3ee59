// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// Symbol visibility and the versioned namespace. `CUGUEST_API` is empty in a static build
/// (`CUGUEST_STATIC`, which travels with the Meson, pkg-config and CMake dependency): a library
/// that embeds cuguest must not re-export it, or two embedders in one process would silently share
/// one copy's statics. test/embed/ asserts it.

#ifndef CUGUEST_EXPORT_H_
#define CUGUEST_EXPORT_H_

#include "cuguest/version.h"

#if defined(CUGUEST_STATIC)
#define CUGUEST_API
#else
#define CUGUEST_API [[gnu::visibility("default")]]
#endif

#define CUGUEST_INTERNAL_JOIN_1(a) v##a
#define CUGUEST_INTERNAL_JOIN_2(a, b) v##a##_##b
#define CUGUEST_INTERNAL_JOIN_3(a, b, c) v##a##_##b##_##c
#define CUGUEST_INTERNAL_EXPAND_1(a) CUGUEST_INTERNAL_JOIN_1(a)
#define CUGUEST_INTERNAL_EXPAND_2(a, b) CUGUEST_INTERNAL_JOIN_2(a, b)
#define CUGUEST_INTERNAL_EXPAND_3(a, b, c) CUGUEST_INTERNAL_JOIN_3(a, b, c)
#define CUGUEST_INTERNAL_QUOTE(word) #word
#define CUGUEST_INTERNAL_TEXT(word) CUGUEST_INTERNAL_QUOTE(word)

// One release: v0_3_0.
#define CUGUEST_INTERNAL_RELEASE \
  CUGUEST_INTERNAL_EXPAND_3(CUGUEST_VERSION_MAJOR, CUGUEST_VERSION_MINOR, CUGUEST_VERSION_PATCH)

/// Note [What two embedders share]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// The dynamic linker makes equal visible symbols of a process one, and the compiler makes such a
/// symbol of every inline function and static data member that it emits. So the inline code of one
/// embedder would run in another, with the wrong copy's driver table and counts, and, being unique
/// to the process (STB_GNU_UNIQUE), would keep the embedder loaded after dlclose. Hence:
///
/// - Each inline function and static data member of the headers is declared with `CUGUEST_HIDE`. It
///   is no symbol of the embedder's dynamic table, whatever -fvisibility is. The types stay
///   visible: a class of the embedder's may have them as members, and its functions as parameters,
///   without a warning.
/// - So is each implicit member that a compiler may emit: a struct whose members have initializers,
///   constructors or destructors declares its own as defaulted, and is no aggregate in C++20.
/// - The inline namespace names the release as far as it may change a type: `v0_3`, since each 0.x
///   may; from 1.0 on `v1`. The tag of `CUGUEST_HIDE` names all of it, so that objects compiled
///   with the headers of two patch releases can be linked into one.
/// - Namespace `runtime` is hidden as a whole, its types too, which are bound to one copy of the
///   CUDA runtime anyway (runtime/binding.h), and an inline namespace in it names all of the
///   release. Nothing in it needs `CUGUEST_HIDE`.
///
/// Other people's templates over our types, like std::optional<ContextGuard>, remain as visible as
/// the embedder makes its own code. Two embedders of the same release that are both compiled with
/// default visibility can share those, and so, through them, one of the two copies of cuguest: they
/// are the same code, the copy that entered a guard leaves it, and the dynamic linker keeps a
/// library loaded that another one uses. (Patch releases change no type that a template of somebody
/// else's may hold.) To share nothing, compile with -fvisibility=hidden, link with a version
/// script, or give the namespace a name of your own with CUGUEST_NAMESPACE_SUFFIX (Meson:
/// -Dcuguest:namespace_suffix), the same for the library and for all that includes its headers.
/// test/headers/hide.py finds declarations without the macro, and inserts it with --fix.
/// On Windows nothing is shared that is not exported. Compilers without GNU's extensions have
/// neither attribute.
#if !defined(__GNUC__)
#define CUGUEST_HIDE
#elif defined(_WIN32)
#define CUGUEST_HIDE [[gnu::abi_tag(CUGUEST_INTERNAL_TEXT(CUGUEST_INTERNAL_RELEASE))]]
#else
#define CUGUEST_HIDE \
  [[gnu::visibility("hidden"), gnu::abi_tag(CUGUEST_INTERNAL_TEXT(CUGUEST_INTERNAL_RELEASE))]]
#endif

#if CUGUEST_VERSION_MAJOR == 0
#define CUGUEST_INTERNAL_ABI CUGUEST_INTERNAL_EXPAND_2(CUGUEST_VERSION_MAJOR, CUGUEST_VERSION_MINOR)
#else
#define CUGUEST_INTERNAL_ABI CUGUEST_INTERNAL_EXPAND_1(CUGUEST_VERSION_MAJOR)
#endif

#if defined(CUGUEST_NAMESPACE_SUFFIX)
#define CUGUEST_INTERNAL_JOIN_SUFFIX(abi, suffix) abi##_##suffix
#define CUGUEST_INTERNAL_EXPAND_SUFFIX(abi, suffix) CUGUEST_INTERNAL_JOIN_SUFFIX(abi, suffix)
#define CUGUEST_INTERNAL_NAMESPACE \
  CUGUEST_INTERNAL_EXPAND_SUFFIX(CUGUEST_INTERNAL_ABI, CUGUEST_NAMESPACE_SUFFIX)
#else
#define CUGUEST_INTERNAL_NAMESPACE CUGUEST_INTERNAL_ABI
#endif

#define CUGUEST_BEGIN_NAMESPACE \
  namespace cuguest {           \
  inline namespace CUGUEST_INTERNAL_NAMESPACE {
#define CUGUEST_END_NAMESPACE \
  } /* inline namespace */    \
  } /* namespace cuguest */
#define CUGUEST_BEGIN_INTERNAL_NAMESPACE \
  CUGUEST_BEGIN_NAMESPACE                \
  namespace internal {
#define CUGUEST_END_INTERNAL_NAMESPACE \
  } /* namespace internal */           \
  CUGUEST_END_NAMESPACE

CUGUEST_BEGIN_INTERNAL_NAMESPACE
struct [[gnu::visibility("hidden")]] Hidden;
CUGUEST_END_INTERNAL_NAMESPACE

/// The last template parameter of a member template of a class template, beside CUGUEST_HIDE, which
/// clang 14 ignores there: what has a hidden argument is hidden.
#define CUGUEST_HIDE_TEMPLATE typename = ::cuguest::CUGUEST_INTERNAL_NAMESPACE::internal::Hidden

#endif  // CUGUEST_EXPORT_H_
