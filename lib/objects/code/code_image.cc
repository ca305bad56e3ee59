// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/code_image.h"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/core/image_namespace.h"
#include "lib/image/include/cudaimage/contents.h"
#include "lib/objects/code/function_in_context.h"
#include "lib/objects/code/image_status.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// What the bytes were found to hold.
struct ImageContents {
  std::vector<std::string> kernel_names;  // sorted
  cudaimage::CodeContents contents;
  absl::Status damage;
};

struct CodeImageData {
  ~CodeImageData() { delete contents.load(std::memory_order_relaxed); }

  std::vector<std::uint64_t> storage;  // empty of what was borrowed
  HostSpan<const unsigned char> bytes;
  cudaimage::CodeKind kind = cudaimage::CodeKind::kPtx;
  std::string name;
  bool lto_ir = false;
  // Null until somebody asks.
  mutable std::atomic<const ImageContents*> contents{nullptr};
};

}  // namespace internal

namespace {

namespace cudaimage = internal::cudaimage;
using internal::CodeImageData;
using internal::ImageContents;
using Storage = std::vector<std::uint64_t>;  // the driver reads in eights

// With room for a NUL.
Storage StorageOf(std::size_t size) { return Storage(size / sizeof(std::uint64_t) + 1); }

HostSpan<const unsigned char> BytesOf(const Storage& storage, std::size_t size) {
  return {reinterpret_cast<const unsigned char*>(storage.data()), size};
}

Storage CopyOf(HostSpan<const unsigned char> bytes) {
  Storage storage = StorageOf(bytes.size());
  if (bytes.size() > 0) std::memcpy(storage.data(), bytes.data(), bytes.size());
  return storage;
}

std::string NameOf(std::string_view name) { return std::string(name.empty() ? "(unnamed)" : name); }

absl::Status CheckNotNull(HostSpan<const unsigned char> bytes, std::string_view name) {
  if (bytes.data() != nullptr || bytes.size() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("device code \"", NameOf(name), "\": ", bytes.size(), " bytes at null"));
}

cudaimage::Bytes ReadersBytes(HostSpan<const unsigned char> bytes) {
  return {bytes.data(), bytes.size()};
}

static_assert(static_cast<int>(cudaimage::CodeKind::kLtoIr) ==
                  static_cast<int>(CodeImage::Kind::kLtoIr),
              "the reader's kinds are ours");

absl::Status OfImage(const std::string& name, const cudaimage::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const bool no_memory = status.code() == cudaimage::Status::Code::kNoMemory;
  return absl::Status(
      no_memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument,
      absl::StrCat("device code \"", name, "\", ", status.message()));
}

bool IsAligned(const unsigned char* data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(std::uint64_t) == 0;
}

// Read by the first caller; by several, if they do so at the same time.
const ImageContents& ContentsOf(const CodeImageData& data) {
  const ImageContents* known = data.contents.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto read = std::make_unique<ImageContents>();
  read->damage =
      OfImage(data.name, cudaimage::ReadCode(data.kind, ReadersBytes(data.bytes), &read->contents));
  for (const auto& kernel : read->contents.kernels) read->kernel_names.push_back(kernel.first);
  if (data.contents.compare_exchange_strong(known, read.get(), std::memory_order_acq_rel)) {
    return *read.release();
  }
  return *known;
}

absl::StatusCode CodeFor(int error) {
  if (error == ENOENT || error == ENOTDIR) return absl::StatusCode::kNotFound;
  if (error == EACCES || error == EPERM) return absl::StatusCode::kPermissionDenied;
  return absl::StatusCode::kUnavailable;
}

// `*size` bytes.
absl::StatusOr<Storage> ReadFile(const std::string& path, std::size_t* size) {
  constexpr off_t kLargest = off_t{2} << 30;
  const auto failed = [&path](absl::StatusCode code, const auto&... why) {
    return absl::Status(code, absl::StrCat("read device code from \"", path, "\": ", why...));
  };
  struct stat found = {};
  const bool exists = stat(path.c_str(), &found) == 0;
  if (exists && !S_ISREG(found.st_mode)) {  // a pipe would be waited for
    return failed(absl::StatusCode::kInvalidArgument, "it is not a regular file");
  }
  if (found.st_size > kLargest) {
    return failed(absl::StatusCode::kResourceExhausted, "it has ", found.st_size,
                  " bytes; the most is ", kLargest);
  }
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  const File file(exists ? std::fopen(path.c_str(), "rbe") : nullptr, std::fclose);
  if (file == nullptr) return failed(CodeFor(errno), std::strerror(errno));
  *size = static_cast<std::size_t>(found.st_size);
  Storage storage = StorageOf(*size);
  if (std::fread(storage.data(), 1, *size, file.get()) == *size) return storage;
  return std::ferror(file.get()) != 0
             ? failed(CodeFor(errno), std::strerror(errno))
             : failed(absl::StatusCode::kUnavailable, "it became shorter meanwhile");
}

}  // namespace

const char* Name(CodeImage::Kind kind) noexcept {
  return cudaimage::ToString(static_cast<cudaimage::CodeKind>(kind));
}

// `storage` is empty, or what `bytes` are in.
absl::StatusOr<CodeImage> CodeImage::Make(HostSpan<const unsigned char> bytes, Storage storage,
                                          std::string name) {
  const auto data = std::make_shared<CodeImageData>();
  CUGUEST_RETURN_IF_ERROR(
      OfImage(name, cudaimage::RecogniseCode(ReadersBytes(bytes), &data->kind)));
  const bool lacks_nul =
      data->kind == cudaimage::CodeKind::kPtx && bytes.data()[bytes.size() - 1] != 0;
  if (storage.empty() && (lacks_nul || !IsAligned(bytes.data()))) {
    storage = CopyOf(bytes);
    bytes = BytesOf(storage, bytes.size());
  }
  if (lacks_nul) bytes = {bytes.data(), bytes.size() + 1};
  data->lto_ir = cudaimage::HasLtoIr(data->kind, ReadersBytes(bytes));
  data->storage = std::move(storage);
  data->bytes = bytes;
  data->name = std::move(name);
  return CodeImage(data);
}

absl::StatusOr<CodeImage> CodeImage::FromFile(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("read device code from \"", path.c_str(), "...\": a NUL in its name"));
  }
  std::size_t size = 0;
  CUGUEST_ASSIGN_OR_RETURN(Storage storage, ReadFile(path, &size));
  const HostSpan<const unsigned char> bytes = BytesOf(storage, size);
  return Make(bytes, std::move(storage), path);
}

absl::StatusOr<CodeImage> CodeImage::Copy(HostSpan<const unsigned char> bytes,
                                          std::string_view name) {
  CUGUEST_RETURN_IF_ERROR(CheckNotNull(bytes, name));
  Storage storage = CopyOf(bytes);
  const HostSpan<const unsigned char> copied = BytesOf(storage, bytes.size());
  return Make(copied, std::move(storage), NameOf(name));
}

absl::StatusOr<CodeImage> CodeImage::Borrow(HostSpan<const unsigned char> bytes,
                                            std::string_view name) {
  CUGUEST_RETURN_IF_ERROR(CheckNotNull(bytes, name));
  return Make(bytes, Storage(), NameOf(name));
}

absl::StatusOr<CodeImage> CodeImage::FromPtx(std::string_view text, std::string_view name) {
  absl::StatusOr<CodeImage> image =
      Copy({reinterpret_cast<const unsigned char*>(text.data()), text.size()}, name);
  if (!image.ok() || image->kind() == CodeImage::Kind::kPtx) return image;
  return absl::InvalidArgumentError(
      absl::StrCat("device code \"", NameOf(name), "\": it is ", Name(image->kind()), ", not PTX"));
}

CodeImage::Kind CodeImage::kind() const noexcept {
  return static_cast<CodeImage::Kind>(data_->kind);
}
HostSpan<const unsigned char> CodeImage::bytes() const noexcept { return data_->bytes; }
const std::string& CodeImage::name() const noexcept { return data_->name; }
bool CodeImage::has_lto_ir() const noexcept { return data_->lto_ir; }
const std::vector<std::string>& CodeImage::kernel_names() const {
  return ContentsOf(*data_).kernel_names;
}
bool CodeImage::names_all_kernels() const { return ContentsOf(*data_).contents.names_all; }
absl::Status CodeImage::Validate() const { return ContentsOf(*data_).damage; }
const std::vector<std::string>& internal::ImageAccess::Targets(const CodeImage& image) {
  return ContentsOf(*image.data_).contents.targets;
}
std::map<std::string, internal::KernelInImage> internal::ImageAccess::Kernels(
    const CodeImage& image) {
  using cudaimage::KernelContents;
  std::map<std::string, KernelInImage> kernels;
  for (const auto& [name, contents] : ContentsOf(*image.data_).contents.kernels) {
    KernelInImage& kernel = kernels[name];
    kernel.required_block = PackSizes(contents.block.x, contents.block.y, contents.block.z);
    if (contents.parameters != KernelContents::kUnknown) kernel.parameters = contents.parameters;
  }
  return kernels;
}

CUGUEST_END_NAMESPACE
