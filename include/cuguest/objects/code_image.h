// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file `CodeImage` is bytes of device code: their kind, their name in messages, the kernels they
/// name. It accepts whatever a compiler writes, also a newer one than cuguest knows. Validate()
/// finds damage in untrusted images before they reach the driver, which may crash.
///
///   absl::StatusOr<CodeImage> image = CodeImage::FromFile("kernels.fatbin");
///   if (!image.ok()) return image.status();
///   absl::Status sound = image->Validate();           // what somebody uploaded, say
///   if (!sound.ok()) return sound;
///
///   extern const unsigned char kKernels[];  // embedded; outlives whatever is made of it
///   absl::StatusOr<CodeImage> embedded = CodeImage::Borrow({kKernels, kKernelsSize}, "kernels");

#ifndef CUGUEST_OBJECTS_CODE_IMAGE_H_
#define CUGUEST_OBJECTS_CODE_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/objects/host_span.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct CodeImageData;
struct ImageAccess;
}  // namespace internal

/// A copy shares the bytes. No driver is needed or called.
/// Threads: immutable.
/// Errors:  each function that makes one returns kInvalidArgument for bytes that are no image, or
///          not of the kind that it takes, or null, see Note [Damaged images]: the text has the
///          image's name and what is wrong. Without host memory it throws std::bad_alloc, or
///          returns kResourceExhausted where that is for an image's decompressed bytes.
/// Cost:    making one reads the header, and in a container those of its entries.
class CUGUEST_API CodeImage {
 public:
  enum class Kind {
    kPtx,               ///< text
    kCubin,             ///< device ELF that can be loaded
    kRelocatableCubin,  ///< device ELF for a linker: nvcc -dc -cubin
    kFatbin,            ///< a container of the others; see CodeImage::has_lto_ir()
    kObject,            ///< host ELF with device code in it: nvcc -dc
    kArchive,           ///< .a
    kLtoIr,             ///< nvcc -dlto -ltoir
  };

  /// Read at once; the file may change afterwards. name() is the path.
  /// Errors: kNotFound            no such file
  ///         kInvalidArgument     no regular file, such as a directory, or a NUL in the path
  ///         kPermissionDenied    it may not be read
  ///         kResourceExhausted   more than 2 GiB
  ///         kUnavailable         reading failed
  [[nodiscard]] static absl::StatusOr<CodeImage> FromFile(const std::string& path);

  /// `name` is for messages only, and may be empty.
  [[nodiscard]] static absl::StatusOr<CodeImage> Copy(HostSpan<const unsigned char> bytes,
                                                      std::string_view name);

  /// Not copied. PTX without a final NUL, and bytes not aligned to 8, are copied.
  /// Requires: the bytes stay unchanged as long as any copy of the image, or what is loaded from
  ///           it, exists.
  [[nodiscard]] static absl::StatusOr<CodeImage> Borrow(HostSpan<const unsigned char> bytes,
                                                        std::string_view name);

  /// Not for bytes that may end with the statement: see Note [Temporary containers].
  template <typename Bytes, typename = internal::IfEndsTooEarly<unsigned char, Bytes>>
  static absl::StatusOr<CodeImage> Borrow(Bytes&& bytes, std::string_view name) = delete;

  /// Copied. For PTX made at run time, by NVRTC for example.
  [[nodiscard]] static absl::StatusOr<CodeImage> FromPtx(std::string_view text,
                                                         std::string_view name);

  /// Copying and moving are one: no image is ever empty.
  CUGUEST_HIDE CodeImage(const CodeImage&) = default;
  CUGUEST_HIDE CodeImage& operator=(const CodeImage&) = default;
  CUGUEST_HIDE ~CodeImage() = default;

  [[nodiscard]] Kind kind() const noexcept;

  /// Starts at a multiple of 8. PTX ends in a NUL, which is counted.
  [[nodiscard]] HostSpan<const unsigned char> bytes() const noexcept;

  /// The file's path, or the name that was given; "(unnamed)" if that was empty.
  [[nodiscard]] const std::string& name() const noexcept;

  /// Whether it is free of damage that could harm the process; see Note [Damaged images].
  /// Errors: kInvalidArgument  certain damage: the text has the image's name, the offset and what
  ///                           is wrong; or a host object without device code for a linker
  /// Cost:   this and the next two read all bytes once, decompressed; the image keeps the result.
  absl::Status Validate() const;

  /// The kernels that can be read off the image, sorted, as the driver names them (C++ ones
  /// mangled); of a container, for all architectures. From CUDA 12.4 on a Module asks the driver.
  [[nodiscard]] const std::vector<std::string>& kernel_names() const;

  /// Whether those are all. Not so for LTO IR, for what is damaged or not understood, and for what
  /// is compressed where the machine lacks the library to decompress it.
  [[nodiscard]] bool names_all_kernels() const;

  /// Whether it is or contains LTO IR, which needs a linker with link-time optimisation.
  [[nodiscard]] bool has_lto_ir() const noexcept;

 private:
  friend struct internal::ImageAccess;
  CUGUEST_HIDE explicit CodeImage(std::shared_ptr<const internal::CodeImageData> data) noexcept
      : data_(std::move(data)) {}
  static absl::StatusOr<CodeImage> Make(HostSpan<const unsigned char> bytes,
                                        std::vector<std::uint64_t> storage, std::string name);

  std::shared_ptr<const internal::CodeImageData> data_;
};

/// "PTX", "a cubin", "an archive" ...: for messages. Never null.
[[nodiscard]] CUGUEST_API const char* Name(CodeImage::Kind kind) noexcept;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_CODE_IMAGE_H_
