// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognises the objects of the system by their soname: the driver, the runtime, tools' interfaces
// to them, and libraries that only pass calls on. A name that begins alike is another library.
//
// Thread-safe: yes. Allocates nothing, so that the collector may call it.

#ifndef CUGUEST_AUDIT_SYSTEM_OBJECT_H_
#define CUGUEST_AUDIT_SYSTEM_OBJECT_H_

#include <cstdint>
#include <string_view>

namespace cuguest::audit {

enum class SystemRole : std::uint8_t {
  kNone,         // a program or library of its own
  kDriver,       // libcuda.so.1 and the libraries that come with it
  kRuntime,      // libcudart.so
  kTool,         // CUPTI, the sanitizer, the collector
  kToolkit,      // libcublas.so and the like, which act for the owner of a handle of theirs
  kPassesOn,     // the C and C++ libraries, the loader, OpenMP, libffi, sanitizers, cuguest
  kInterpreter,  // of Python
};

// `soname` is what the object's dynamic section has; empty if it has none or it is not known. The
// name of the file counts only then.
SystemRole RoleOf(std::string_view soname, std::string_view path);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_SYSTEM_OBJECT_H_
