// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "lib/module/decompress.h"
#include "lib/module/zstd_bits.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

constexpr std::uint32_t kMagic = 0xfd2fb528;
constexpr std::size_t kMostBlock = 128 << 10;

// What a code of a literals or a match length stands for: base + so many further bits.
struct LengthCode {
  std::uint32_t base;
  std::uint8_t bits;
};
constexpr LengthCode kLiteralLengths[] = {
    {0, 0},     {1, 0},      {2, 0},      {3, 0},     {4, 0},   {5, 0},     {6, 0},     {7, 0},
    {8, 0},     {9, 0},      {10, 0},     {11, 0},    {12, 0},  {13, 0},    {14, 0},    {15, 0},
    {16, 1},    {18, 1},     {20, 1},     {22, 1},    {24, 2},  {28, 2},    {32, 3},    {40, 3},
    {48, 4},    {64, 6},     {128, 7},    {256, 8},   {512, 9}, {1024, 10}, {2048, 11}, {4096, 12},
    {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}};
constexpr LengthCode kMatchLengths[] = {
    {3, 0},     {4, 0},     {5, 0},      {6, 0},      {7, 0},     {8, 0},   {9, 0},     {10, 0},
    {11, 0},    {12, 0},    {13, 0},     {14, 0},     {15, 0},    {16, 0},  {17, 0},    {18, 0},
    {19, 0},    {20, 0},    {21, 0},     {22, 0},     {23, 0},    {24, 0},  {25, 0},    {26, 0},
    {27, 0},    {28, 0},    {29, 0},     {30, 0},     {31, 0},    {32, 0},  {33, 0},    {34, 0},
    {35, 1},    {37, 1},    {39, 1},     {41, 1},     {43, 2},    {47, 2},  {51, 3},    {59, 3},
    {67, 4},    {83, 4},    {99, 5},     {131, 7},    {259, 8},   {515, 9}, {1027, 10}, {2051, 11},
    {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16}};
constexpr std::size_t kMostOffsetCodes = 32;

// The code of one of a sequence's three numbers, and what it is unless a block says otherwise.
struct SequenceCode {
  unsigned most_accuracy;
  std::size_t symbols;
  unsigned usual_accuracy;
  std::vector<int> usual;
};
const SequenceCode& LiteralLengthCode() {
  static const auto& code = *new SequenceCode{
      9, std::size(kLiteralLengths), 6, {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                         2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1}};
  return code;
}
const SequenceCode& OffsetCode() {
  static const auto& code =
      *new SequenceCode{8, kMostOffsetCodes, 5, {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                                 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1}};
  return code;
}
const SequenceCode& MatchLengthCode() {
  static const auto& code = *new SequenceCode{
      9, std::size(kMatchLengths), 6, {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}};
  return code;
}

// Bytes that are read one field after the other. A field that is not there is 0, and the
// reader is not ok from then on.
class Fields {
 public:
  explicit Fields(const ImageBytes& bytes) : rest_(bytes) {}

  // Little-endian; at most 8 bytes.
  std::uint64_t Read(std::size_t size) {
    const ImageBytes field = Take(size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < field.size(); ++i) {
      value |= std::uint64_t{field.At<std::uint8_t>(i)} << (8 * i);
    }
    return value;
  }

  ImageBytes Take(std::uint64_t size) {
    ok_ = ok_ && rest_.Has(0, size);
    if (!ok_) return ImageBytes();
    const ImageBytes field = rest_.Part(0, size);
    rest_ = rest_.From(size);
    return field;
  }

  bool ok() const { return ok_; }
  const ImageBytes& rest() const { return rest_; }

 private:
  ImageBytes rest_;
  bool ok_ = true;
};

class ZstdFrame {
 public:
  ZstdFrame(const ImageBytes& packed, std::uint64_t size) : packed_(packed), size_(size) {}

  absl::StatusOr<std::string> Decompress() {
    Fields fields(packed_);
    if (!ReadHeader(&fields)) return Damaged(packed_, 0, "no zstd frame of ", size_, " bytes");
    for (bool last = false; !last;) {
      const ImageBytes block = fields.rest();
      if (!DecompressBlock(&fields, &last)) return Damaged(block, 0, "no zstd block");
    }
    if (out_.size() == size_) return std::move(out_);
    return Damaged(packed_, 0, "it decompresses to ", out_.size(), " bytes, not ", size_);
  }

 private:
  bool ReadHeader(Fields* fields) {
    if (fields->Read(sizeof(kMagic)) != kMagic) return false;
    const auto descriptor = static_cast<unsigned>(fields->Read(1));
    const bool has_window = (descriptor & 0x20) == 0;
    const bool has_dictionary = (descriptor & 3) != 0;
    const unsigned size_flag = descriptor >> 6;
    if ((descriptor & 8) != 0 || has_dictionary) return false;
    if (has_window) fields->Read(1);
    if (has_window && size_flag == 0) return fields->ok();
    const std::uint64_t size = fields->Read(std::size_t{1} << size_flag);
    return fields->ok() && (size_flag == 1 ? size + 256 : size) == size_;
  }

  bool Fits(std::uint64_t count) const { return count <= size_ - out_.size(); }

  bool DecompressBlock(Fields* fields, bool* last) {
    enum { kRaw, kRepeated, kCompressed };
    const std::uint64_t header = fields->Read(3);
    const std::uint64_t type = header >> 1 & 3;
    const std::uint64_t size = header >> 3;
    *last = (header & 1) != 0;
    const ImageBytes block = fields->Take(type == kRepeated ? 1 : size);
    if (!fields->ok() || size > kMostBlock) return false;
    if (type == kCompressed) return DecompressCompressed(block);
    if (!Fits(size) || (type != kRaw && type != kRepeated)) return false;
    if (type == kRaw) out_.append(block.text());
    if (type == kRepeated) out_.append(static_cast<std::size_t>(size), block.text()[0]);
    return true;
  }

  bool DecompressCompressed(const ImageBytes& block) {
    Fields fields(block);
    literals_.clear();
    return ReadLiterals(&fields) && ReadSequences(&fields);
  }

  bool ReadLiterals(Fields* fields) {
    enum { kRaw, kRepeated, kHuffman, kHuffmanAsBefore };
    if (!fields->rest().Has(0, 1)) return false;
    const auto first = fields->rest().At<std::uint8_t>(0);
    const unsigned type = first & 3;
    const unsigned format = first >> 2 & 3;
    if (type >= kHuffman) return ReadHuffmanLiterals(fields, format, type == kHuffmanAsBefore);
    // 5, 12 or 20 bits of size.
    const std::size_t bytes = format % 2 == 0 ? 1 : format == 1 ? 2 : 3;
    const std::uint64_t size = fields->Read(bytes) >> (format % 2 == 0 ? 3 : 4);
    const ImageBytes data = fields->Take(type == kRepeated ? 1 : size);
    if (!fields->ok() || size > kMostBlock) return false;
    if (type == kRaw) literals_.assign(data.text());
    if (type == kRepeated) literals_.assign(static_cast<std::size_t>(size), data.text()[0]);
    return true;
  }

  bool ReadHuffmanLiterals(Fields* fields, unsigned format, bool as_before) {
    constexpr unsigned kBits[] = {10, 10, 14, 18};  // of either size
    const unsigned bits = kBits[format];
    const std::uint64_t header = fields->Read((4 + 2 * bits + 7) / 8) >> 4;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const auto size = static_cast<std::size_t>(header & mask);
    ImageBytes data = fields->Take(header >> bits & mask);
    if (!fields->ok() || size > kMostBlock) return false;
    if (!as_before) {
      std::size_t table_size = 0;
      if (!huffman_.Read(data, &table_size)) return false;
      data = data.From(table_size);
    }
    if (huffman_.empty()) return false;
    return format == 0 ? huffman_.Decode(data, size, &literals_) : DecodeFour(data, size);
  }

  // Four streams, whose sizes but the last's stand before them.
  bool DecodeFour(const ImageBytes& data, std::size_t size) {
    const std::size_t each = (size + 3) / 4;
    if (size < 3 * each) return false;
    Fields fields(data);
    std::uint64_t sizes[3];
    for (std::uint64_t& stream : sizes) stream = fields.Read(2);
    for (const std::uint64_t stream : sizes) {
      const ImageBytes bytes = fields.Take(stream);
      if (!fields.ok() || !huffman_.Decode(bytes, each, &literals_)) return false;
    }
    return huffman_.Decode(fields.rest(), size - 3 * each, &literals_);
  }

  bool ReadSequences(Fields* fields) {
    std::uint64_t count = fields->Read(1);
    if (count == 255) {
      count = fields->Read(2) + 0x7f00;
    } else if (count >= 128) {
      count = ((count - 128) << 8) + fields->Read(1);
    }
    if (!fields->ok()) return false;
    if (count == 0) return fields->rest().size() == 0 && TakeLiterals(literals_.size());
    const auto modes = static_cast<unsigned>(fields->Read(1));
    const bool read = fields->ok() && (modes & 3) == 0 &&
                      ReadTable(LiteralLengthCode(), modes >> 6, fields, &literal_lengths_) &&
                      ReadTable(OffsetCode(), modes >> 4 & 3, fields, &offsets_) &&
                      ReadTable(MatchLengthCode(), modes >> 2 & 3, fields, &match_lengths_);
    return read && RunSequences(fields->rest(), count) && TakeLiterals(literals_.size());
  }

  static bool ReadTable(const SequenceCode& code, unsigned mode, Fields* fields, FseTable* table) {
    enum { kUsual, kOne, kDescribed, kAsBefore };
    if (mode == kUsual) return table->Build(code.usual, code.usual_accuracy);
    if (mode == kAsBefore) return !table->empty();
    if (mode == kOne) {
      const auto symbol = static_cast<std::uint8_t>(fields->Read(1));
      table->BuildOfOne(symbol);
      return fields->ok() && symbol < code.symbols;
    }
    std::size_t size = 0;
    if (!table->Read(fields->rest(), code.most_accuracy, code.symbols, &size)) return false;
    fields->Take(size);
    return fields->ok();
  }

  bool RunSequences(const ImageBytes& bytes, std::uint64_t count) {
    BackwardBits bits;
    FseState literal_length;
    FseState offset;
    FseState match_length;
    if (!bits.Begin(bytes)) return false;
    literal_length.Begin(literal_lengths_, &bits);
    offset.Begin(offsets_, &bits);
    match_length.Begin(match_lengths_, &bits);
    for (std::uint64_t i = 0; i < count; ++i) {
      const unsigned offset_code = offset.Symbol();
      const std::uint64_t offset_value = (std::uint64_t{1} << offset_code) + bits.Read(offset_code);
      const std::uint64_t match = ReadLength(kMatchLengths[match_length.Symbol()], &bits);
      const std::uint64_t literals = ReadLength(kLiteralLengths[literal_length.Symbol()], &bits);
      if (bits.Overran() || !TakeLiterals(literals)) return false;
      if (!CopyMatch(Distance(offset_value, literals == 0), match)) return false;
      if (i + 1 == count) break;
      literal_length.Advance(&bits);
      match_length.Advance(&bits);
      offset.Advance(&bits);
    }
    return bits.AtEnd();
  }

  static std::uint64_t ReadLength(const LengthCode& code, BackwardBits* bits) {
    return code.base + bits->Read(code.bits);
  }

  // The first three values mean a distance as before; without literals, the one after it.
  std::uint64_t Distance(std::uint64_t value, bool no_literals) {
    const std::uint64_t which = value + (no_literals ? 1 : 0);
    if (value <= 3 && which == 1) return recent_[0];
    std::uint64_t distance = value - 3;
    if (value <= 3) distance = which == 4 ? recent_[0] - 1 : recent_[which - 1];
    if (value > 3 || which != 2) recent_[2] = recent_[1];
    recent_[1] = recent_[0];
    recent_[0] = distance;
    return distance;
  }

  // From those of the block.
  bool TakeLiterals(std::uint64_t count) {
    if (count > literals_.size() || !Fits(count)) return false;
    out_.append(literals_, 0, static_cast<std::size_t>(count));
    literals_.erase(0, static_cast<std::size_t>(count));
    return true;
  }

  // Byte by byte: it may overlap what it makes.
  bool CopyMatch(std::uint64_t distance, std::uint64_t count) {
    if (distance == 0 || distance > out_.size() || !Fits(count)) return false;
    const auto back = static_cast<std::size_t>(distance);
    for (; count > 0; --count) out_.push_back(out_[out_.size() - back]);
    return true;
  }

  const ImageBytes packed_;
  const std::uint64_t size_;
  std::string out_;
  std::string literals_;
  HuffmanTable huffman_;
  FseTable literal_lengths_;
  FseTable offsets_;
  FseTable match_lengths_;
  std::array<std::uint64_t, 3> recent_ = {1, 4, 8};
};

}  // namespace

absl::StatusOr<std::string> DecompressZstd(const ImageBytes& packed, std::uint64_t size) {
  return ZstdFrame(packed, size).Decompress();
}

}  // namespace internal
CUGUEST_END_NAMESPACE
