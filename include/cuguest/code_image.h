// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// code_image.h                                                          tier: 3
// -----------------------------------------------------------------------------
//
// `CodeImage` is bytes of device code that were looked at: what they are, what they are
// called in messages, which kernels they name. A damaged image is a status here, and not
// a crash of the driver, which trusts what it is given.
//
//   absl::StatusOr<CodeImage> image = CodeImage::FromFile("kernels.fatbin");
//   if (!image.ok()) return image.status();
//
//   extern const unsigned char kKernels[];  // embedded; outlives whatever is made of it
//   absl::StatusOr<CodeImage> embedded = CodeImage::Borrow({kKernels, kKernelsSize}, "kernels");

#ifndef CUGUEST_CODE_IMAGE_H_
#define CUGUEST_CODE_IMAGE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/host_span.h"

CUGUEST_BEGIN_NAMESPACE

enum class CodeKind {
  kPtx,               // text
  kCubin,             // device ELF that can be loaded
  kRelocatableCubin,  // device ELF for a linker: nvcc -dc -cubin
  kFatbin,            // a container of the others; see CodeImage::has_lto_ir()
  kObject,            // host ELF with device code in it: nvcc -dc
  kArchive,           // .a
  kLtoIr,             // nvcc -dlto -ltoir
};

// "PTX", "a cubin", "an archive" ...: for messages. Never null.
[[nodiscard]] CUGUEST_API const char* ToString(CodeKind kind) noexcept;

// Note [Damaged images]
// ~~~~~~~~~~~~~~~~~~~~~
// The driver trusts what a cubin or a fatbin says of itself: damage of its tables ends in a
// crash or in an endless loop inside the driver (one damaged image in ten, measured with
// 580.159.04). So everything that says where something is, how much of it there is or what
// belongs to what is checked here, through every container and every compression that nvcc
// has: headers, sections, segments, symbols, relocations, names, notes, and the records about
// kernels. After that none of the damaged images of test/module/mutated_images_test.cc, nor of
// tens of thousands more, crashed the driver or harmed its context; it loads them or says no.
//
// What cannot be told from a good image is damaged code and data: it is loaded, and does what
// it does when it is launched. LTO IR and kinds of entries that are not known are not looked
// into: the driver does not load them. Nor is what is compressed where the machine has no
// liblz4.so.1 or libzstd.so.1, which are loaded at run time. PTX is left to the driver's compiler,
// which has an answer to nearly everything; what it crashes on was looked for and is refused. Of
// what is given to a linker a few damaged images in ten thousand still crash the driver's one. A
// checksum that comes with the image is the only proof that it is what was built.
//
// Formats: what nvcc 13.0 writes, and of cubins what differs in older ones as far as it is
// known; an image that breaks a rule of them is refused, even if a driver might take it.

namespace internal {
struct CodeImageData;
}  // namespace internal

// CodeImage
//
// Immutable, and a copy shares the bytes. No driver is needed or called.
//
// Threads: any.
// Errors:  everything that makes one gives kInvalidArgument for bytes that are no device
//          code, or damaged: the text has the image's name, the offset and what is wrong
//          there. See Note [Damaged images].
// Cost:    all bytes are read once, and what is compressed is decompressed to look at it.
class CUGUEST_API CodeImage {
 public:
  // Read at once; the file may change afterwards. name() is the path.
  //
  // Errors: kNotFound            no such file
  //         kInvalidArgument     a directory or another thing that is no regular file, or a
  //                              NUL in the path
  //         kPermissionDenied    it may not be read
  //         kResourceExhausted   more than 2 GiB
  //         kUnavailable         reading failed
  [[nodiscard]] static absl::StatusOr<CodeImage> FromFile(const std::string& path);

  // `name` is for messages only, and may be empty.
  [[nodiscard]] static absl::StatusOr<CodeImage> Copy(HostSpan<const unsigned char> bytes,
                                                      std::string_view name);

  // Not copied: the bytes must stay as they are for as long as any copy of the image lives,
  // and whatever is loaded from it. They are copied all the same if they are PTX without a
  // NUL as the last byte, or do not start at a multiple of 8.
  [[nodiscard]] static absl::StatusOr<CodeImage> Borrow(HostSpan<const unsigned char> bytes,
                                                        std::string_view name);

  // Copied. Made at run time, by NVRTC for example.
  [[nodiscard]] static absl::StatusOr<CodeImage> FromPtx(std::string_view text,
                                                         std::string_view name);

  // Copying and moving are one: no image is ever empty.
  CodeImage(const CodeImage&) = default;
  CodeImage& operator=(const CodeImage&) = default;
  ~CodeImage() = default;

  [[nodiscard]] CodeKind kind() const noexcept;

  // Starts at a multiple of 8. PTX ends in a NUL, which is counted.
  [[nodiscard]] HostSpan<const unsigned char> bytes() const noexcept;

  // Of the file, or as it was given; what was not named is "(unnamed)".
  [[nodiscard]] const std::string& name() const noexcept;

  // The kernels that can be read off the image, as the driver would be asked for them
  // (C++ ones mangled), sorted; of a container those of all that is in it, for whatever
  // architecture.
  [[nodiscard]] const std::vector<std::string>& kernel_names() const noexcept;

  // Whether those are all. LTO IR does not tell its own, nor does what is compressed where the
  // machine lacks the library to look into it.
  [[nodiscard]] bool names_all_kernels() const noexcept;

  // LTO IR, or a container with some: a linker with link-time optimisation has to
  // compile it.
  [[nodiscard]] bool has_lto_ir() const noexcept;

 private:
  explicit CodeImage(std::shared_ptr<const internal::CodeImageData> data) noexcept
      : data_(std::move(data)) {}
  static absl::StatusOr<CodeImage> Made(
      absl::StatusOr<std::shared_ptr<const internal::CodeImageData>> data);

  std::shared_ptr<const internal::CodeImageData> data_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_CODE_IMAGE_H_
