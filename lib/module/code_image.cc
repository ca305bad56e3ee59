// SPDX-License-Identifier: Apache-2.0

#include "cuguest/code_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/core/image_namespace.h"
#include "lib/core/status_macros.h"
#include "lib/image/include/cudaimage/bytes.h"
#include "lib/image/include/cudaimage/contents.h"
#include "lib/module/function_in_context.h"
#include "lib/module/image_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// What the bytes were found to hold.
struct ImageContents {
  std::vector<std::string> kernel_names;  // sorted
  cudaimage::CodeContents contents;
  absl::Status damage;
};

struct CodeImageData {
  CodeImageData(std::vector<std::uint64_t> words, HostSpan<const unsigned char> all,
                CodeKind of_kind, std::string called, bool has_lto_ir)
      : storage(std::move(words)),
        bytes(all),
        kind(of_kind),
        name(std::move(called)),
        lto_ir(has_lto_ir) {}
  CodeImageData(const CodeImageData&) = delete;
  CodeImageData& operator=(const CodeImageData&) = delete;
  ~CodeImageData() { delete contents.load(std::memory_order_relaxed); }

  const std::vector<std::uint64_t> storage;  // empty of what was borrowed
  const HostSpan<const unsigned char> bytes;
  const CodeKind kind;
  const std::string name;
  const bool lto_ir;
  // Null until somebody asks.
  mutable std::atomic<const ImageContents*> contents{nullptr};
};

}  // namespace internal

namespace {

namespace cudaimage = internal::cudaimage;
using internal::CodeImageData;
using internal::ImageContents;
using internal::cudaimage::Bytes;

constexpr std::size_t kAlignment = alignof(std::uint64_t);  // the driver reads in eights
constexpr off_t kLargestFile = off_t{2} << 30;

using Storage = std::vector<std::uint64_t>;

// With room for a NUL.
Storage StorageOf(std::size_t size) { return Storage(size / kAlignment + 1); }

Storage StorageOf(HostSpan<const unsigned char> bytes) {
  Storage storage = StorageOf(bytes.size());
  if (bytes.size() > 0) std::memcpy(storage.data(), bytes.data(), bytes.size());
  return storage;
}

HostSpan<const unsigned char> BytesOf(const Storage& storage, std::size_t size) {
  return {reinterpret_cast<const unsigned char*>(storage.data()), size};
}

std::string NameOf(std::string_view name) { return std::string(name.empty() ? "(unnamed)" : name); }

bool EndsInNul(HostSpan<const unsigned char> bytes) {
  return bytes.size() > 0 && bytes.data()[bytes.size() - 1] == 0;
}

// PTX may come with its NUL or without.
Bytes WithoutNuls(HostSpan<const unsigned char> bytes) {
  while (EndsInNul(bytes)) bytes = {bytes.data(), bytes.size() - 1};
  return Bytes(bytes.data(), bytes.size());
}

absl::Status CheckNotNull(HostSpan<const unsigned char> bytes, std::string_view name) {
  if (bytes.data() != nullptr || bytes.size() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("device code \"", NameOf(name), "\": ", bytes.size(), " bytes at null"));
}

// What is read of the bytes of an image of this kind: PTX without its NUL.
Bytes TextOf(CodeKind kind, HostSpan<const unsigned char> bytes) {
  return kind == CodeKind::kPtx ? WithoutNuls(bytes) : Bytes(bytes.data(), bytes.size());
}

static_assert(static_cast<int>(cudaimage::CodeKind::kLtoIr) == static_cast<int>(CodeKind::kLtoIr),
              "the reader's kinds are ours");
cudaimage::CodeKind ReadersKind(CodeKind kind) { return static_cast<cudaimage::CodeKind>(kind); }

absl::Status OfImage(const std::string& name, const cudaimage::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const bool no_memory = status.code() == cudaimage::Status::Code::kNoMemory;
  return absl::Status(
      no_memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument,
      absl::StrCat("device code \"", name, "\", ", status.message()));
}

absl::StatusOr<CodeKind> Recognise(HostSpan<const unsigned char> bytes, const std::string& name) {
  const Bytes text = WithoutNuls(bytes);
  auto kind = cudaimage::CodeKind::kPtx;
  const cudaimage::Status status = cudaimage::RecogniseCode(
      cudaimage::IsPtx(text) ? text : Bytes(bytes.data(), bytes.size()), &kind);
  if (!status.ok()) return OfImage(name, status);
  return static_cast<CodeKind>(kind);
}

bool IsAligned(const unsigned char* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kAlignment == 0;
}

// `storage` is empty, or what `bytes` are in.
absl::StatusOr<std::shared_ptr<const CodeImageData>> Look(HostSpan<const unsigned char> bytes,
                                                          Storage storage, std::string name) {
  CUGUEST_ASSIGN_OR_RETURN(const CodeKind kind, Recognise(bytes, name));
  const bool lacks_nul = kind == CodeKind::kPtx && !EndsInNul(bytes);
  if (storage.empty() && (lacks_nul || !IsAligned(bytes.data()))) {
    storage = StorageOf(bytes);
    bytes = BytesOf(storage, bytes.size());
  }
  if (lacks_nul) bytes = {bytes.data(), bytes.size() + 1};
  const bool lto_ir = cudaimage::HasLtoIr(ReadersKind(kind), TextOf(kind, bytes));
  return std::make_shared<const CodeImageData>(std::move(storage), bytes, kind, std::move(name),
                                               lto_ir);
}

// Read by the first caller; by several, if they do so at the same time.
const ImageContents& ContentsOf(const CodeImageData& data) {
  const ImageContents* known = data.contents.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto read = std::make_unique<ImageContents>();
  read->damage = OfImage(
      data.name,
      cudaimage::ReadCode(ReadersKind(data.kind), TextOf(data.kind, data.bytes), &read->contents));
  for (const auto& kernel : read->contents.kernels) read->kernel_names.push_back(kernel.first);
  if (data.contents.compare_exchange_strong(known, read.get(), std::memory_order_acq_rel)) {
    return *read.release();
  }
  return *known;
}

class File {
 public:
  explicit File(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  absl::StatusOr<std::size_t> Size() const {
    struct stat found = {};
    if (descriptor_ < 0 || fstat(descriptor_, &found) != 0) return Failed(errno);
    if (!S_ISREG(found.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat(Reading(), ": it is not a regular file"));
    }
    if (found.st_size <= kLargestFile) return static_cast<std::size_t>(found.st_size);
    return absl::ResourceExhaustedError(
        absl::StrCat(Reading(), ": it has ", found.st_size, " bytes; the most is ", kLargestFile));
  }

  absl::Status Read(unsigned char* to, std::size_t size) const {
    while (size > 0) {
      const ssize_t count = read(descriptor_, to, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed(errno);
      if (count == 0) {
        return absl::UnavailableError(absl::StrCat(Reading(), ": it became shorter meanwhile"));
      }
      to += count;
      size -= static_cast<std::size_t>(count);
    }
    return absl::OkStatus();
  }

 private:
  std::string Reading() const { return absl::StrCat("read device code from \"", path_, "\""); }

  absl::Status Failed(int error) const {
    return absl::Status(CodeFor(error), absl::StrCat(Reading(), ": ", std::strerror(error)));
  }

  static absl::StatusCode CodeFor(int error) {
    if (error == ENOENT || error == ENOTDIR) return absl::StatusCode::kNotFound;
    if (error == EACCES || error == EPERM) return absl::StatusCode::kPermissionDenied;
    return absl::StatusCode::kUnavailable;
  }

  const std::string path_;
  const int descriptor_;
};

}  // namespace

const char* ToString(CodeKind kind) noexcept { return cudaimage::ToString(ReadersKind(kind)); }

absl::StatusOr<CodeImage> CodeImage::Made(
    absl::StatusOr<std::shared_ptr<const internal::CodeImageData>> data) {
  if (!data.ok()) return data.status();
  return CodeImage(*std::move(data));
}

absl::StatusOr<CodeImage> CodeImage::FromFile(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("read device code from \"", path.c_str(), "...\": a NUL in its name"));
  }
  const File file(path);
  CUGUEST_ASSIGN_OR_RETURN(const std::size_t size, file.Size());
  Storage storage = StorageOf(size);
  CUGUEST_RETURN_IF_ERROR(file.Read(reinterpret_cast<unsigned char*>(storage.data()), size));
  const HostSpan<const unsigned char> bytes = BytesOf(storage, size);
  return Made(Look(bytes, std::move(storage), path));
}

absl::StatusOr<CodeImage> CodeImage::Copy(HostSpan<const unsigned char> bytes,
                                          std::string_view name) {
  CUGUEST_RETURN_IF_ERROR(CheckNotNull(bytes, name));
  Storage storage = StorageOf(bytes);
  const HostSpan<const unsigned char> copied = BytesOf(storage, bytes.size());
  return Made(Look(copied, std::move(storage), NameOf(name)));
}

absl::StatusOr<CodeImage> CodeImage::Borrow(HostSpan<const unsigned char> bytes,
                                            std::string_view name) {
  CUGUEST_RETURN_IF_ERROR(CheckNotNull(bytes, name));
  return Made(Look(bytes, Storage(), NameOf(name)));
}

absl::StatusOr<CodeImage> CodeImage::FromPtx(std::string_view text, std::string_view name) {
  absl::StatusOr<CodeImage> image =
      Copy({reinterpret_cast<const unsigned char*>(text.data()), text.size()}, name);
  if (!image.ok() || image->kind() == CodeKind::kPtx) return image;
  return absl::InvalidArgumentError(absl::StrCat("device code \"", NameOf(name), "\": it is ",
                                                 ToString(image->kind()), ", not PTX"));
}

CodeKind CodeImage::kind() const noexcept { return data_->kind; }
HostSpan<const unsigned char> CodeImage::bytes() const noexcept { return data_->bytes; }
const std::string& CodeImage::name() const noexcept { return data_->name; }
bool CodeImage::has_lto_ir() const noexcept { return data_->lto_ir; }
const std::vector<std::string>& CodeImage::kernel_names() const {
  return ContentsOf(*data_).kernel_names;
}
bool CodeImage::names_all_kernels() const { return ContentsOf(*data_).contents.names_all; }
absl::Status CodeImage::Validate() const { return ContentsOf(*data_).damage; }
std::map<std::string, std::uint64_t> internal::ImageAccess::RequiredBlocks(const CodeImage& image) {
  std::map<std::string, std::uint64_t> blocks;
  for (const auto& kernel : ContentsOf(*image.data_).contents.kernels) {
    const cudaimage::RequiredBlock& block = kernel.second;
    if (!block.IsAny())
      blocks.emplace(kernel.first, internal::PackSizes(block.x, block.y, block.z));
  }
  return blocks;
}

CUGUEST_END_NAMESPACE
