// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file `CodeImage` is bytes of device code: what they are, what they are called in messages,
/// which kernels they name. Whatever a compiler writes is accepted, also a newer one than cuguest
/// knows; Validate() finds damage in images from places that are not trusted, before they reach the
/// driver, which may crash.
///
///   absl::StatusOr<CodeImage> image = CodeImage::FromFile("kernels.fatbin");
///   if (!image.ok()) return image.status();
///   absl::Status sound = image->Validate();           // what somebody uploaded, say
///   if (!sound.ok()) return sound;
///
///   extern const unsigned char kKernels[];  // embedded; outlives whatever is made of it
///   absl::StatusOr<CodeImage> embedded = CodeImage::Borrow({kKernels, kKernelsSize}, "kernels");

#ifndef CUGUEST_CODE_IMAGE_H_
#define CUGUEST_CODE_IMAGE_H_

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
#include "cuguest/host_span.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct CodeImageData;
struct ImageAccess;
}  // namespace internal

/// Immutable, and a copy shares the bytes. No driver is needed or called.
/// Threads: any.
/// Errors:  everything that makes one gives kInvalidArgument for bytes that are no image, see
///          Note [Damaged images]: the text has the image's name and what is wrong.
/// Cost:    making one reads the header, and of a container those of its entries.
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
  ///         kInvalidArgument     a directory or another thing that is no regular file, or a
  ///                              NUL in the path
  ///         kPermissionDenied    it may not be read
  ///         kResourceExhausted   more than 2 GiB
  ///         kUnavailable         reading failed
  [[nodiscard]] static absl::StatusOr<CodeImage> FromFile(const std::string& path);

  /// `name` is for messages only, and may be empty.
  [[nodiscard]] static absl::StatusOr<CodeImage> Copy(HostSpan<const unsigned char> bytes,
                                                      std::string_view name);

  /// Not copied: the bytes must stay as they are for as long as any copy of the image lives,
  /// and whatever is loaded from it. They are copied all the same if they are PTX without a
  /// NUL as the last byte, or do not start at a multiple of 8.
  [[nodiscard]] static absl::StatusOr<CodeImage> Borrow(HostSpan<const unsigned char> bytes,
                                                        std::string_view name);

  /// Not of bytes that may end with the statement: see Note [Temporary containers].
  template <typename Bytes, typename = internal::IfEndsTooEarly<unsigned char, Bytes>>
  static absl::StatusOr<CodeImage> Borrow(Bytes&& bytes, std::string_view name) = delete;

  /// Copied. Made at run time, by NVRTC for example.
  [[nodiscard]] static absl::StatusOr<CodeImage> FromPtx(std::string_view text,
                                                         std::string_view name);

  /// Copying and moving are one: no image is ever empty.
  CUGUEST_HIDE CodeImage(const CodeImage&) = default;
  CUGUEST_HIDE CodeImage& operator=(const CodeImage&) = default;
  CUGUEST_HIDE ~CodeImage() = default;

  [[nodiscard]] Kind kind() const noexcept;

  /// Starts at a multiple of 8. PTX ends in a NUL, which is counted.
  [[nodiscard]] HostSpan<const unsigned char> bytes() const noexcept;

  /// Of the file, or as it was given; what was not named is "(unnamed)".
  [[nodiscard]] const std::string& name() const noexcept;

  /// Whether it is free of damage that could harm the process; see Note [Damaged images]. For
  /// images from places that are not trusted.
  /// Errors: kInvalidArgument  it is certainly damaged: the text has the image's name, the
  ///                           offset and what is wrong there; or it is an object of the host
  ///                           without device code for a linker
  /// Cost:   the first of this and the next two reads all bytes, and decompresses what is
  ///         compressed; the image keeps what was found.
  absl::Status Validate() const;

  /// The kernels that can be read off the image, as the driver would be asked for them
  /// (C++ ones mangled), sorted; of a container those of all that is in it, for whatever
  /// architecture. A Module asks the driver instead, from CUDA 12.4 on.
  [[nodiscard]] const std::vector<std::string>& kernel_names() const;

  /// Whether those are all. LTO IR does not tell its own, nor does what is damaged, what is not
  /// understood, and what is compressed where the machine lacks the library to look into it.
  [[nodiscard]] bool names_all_kernels() const;

  /// LTO IR, or a container with some: a linker with link-time optimisation has to
  /// compile it.
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

#endif  // CUGUEST_CODE_IMAGE_H_
