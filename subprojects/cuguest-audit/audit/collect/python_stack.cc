// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/python_stack.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace cuguest::audit {
namespace {

// Offsets of members.
struct Layout {
  // Of a thread's state: its innermost frame, or where a pointer to that is.
  std::uint64_t current_frame;
  bool is_indirect;
  // Of a frame.
  std::uint64_t previous;
  std::uint64_t executable;
  std::uint64_t instruction;
  std::uint64_t owner;
  // Of a code object.
  std::uint64_t filename;
  std::uint64_t qualname;
};

constexpr Layout kPython312 = {56, true, 8, 0, 56, 70, 112, 128};

// What _PyRuntime begins with since 3.13, as numbers of 8 bytes; the first are the text "xdebugpy".
constexpr char kCookie[] = "xdebugpy";
enum DebugOffset : std::size_t {
  kFreeThreaded = 2,
  kCurrentFrame = 23,
  kPrevious = 29,
  kExecutable = 30,
  kInstruction = 31,
  kOwner = 33,
  kFilename = 35,
  kQualname = 37,
};

// Of objects and texts in all builds with the lock.
constexpr std::size_t kType = 8;
constexpr std::size_t kTextLength = 16;
constexpr std::size_t kTextState = 32;
constexpr std::size_t kAsciiData = 40;
constexpr std::size_t kWideData = 56;

constexpr std::uint8_t kOwnedByLoop = 3;

struct Interpreter {
  Layout layout;
  int (*is_initialized)();
  void* (*this_thread)();
  int (*line_of)(const void*);
  const void* code_type;
  const void* text_type;
};

Interpreter found;
std::atomic<bool> is_found{false};

template <typename Value>
Value At(const void* object, std::size_t offset) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof(value));
  return value;
}

template <typename Type>
void Look(const char* name, Type* address) {
  void* symbol = dlsym(RTLD_DEFAULT, name);
  std::memcpy(address, &symbol, sizeof(symbol));
}

// False if it is not known.
bool FindLayout(std::uint32_t version, Layout* layout) {
  if (version == 0x030c) {
    *layout = kPython312;
    return true;
  }
  const std::uint64_t* runtime = nullptr;
  Look("_PyRuntime", &runtime);
  const bool is_known = version == 0x030d && runtime != nullptr &&
                        std::memcmp(runtime, kCookie, 8) == 0 && runtime[kFreeThreaded] == 0;
  if (!is_known) return false;
  *layout = {runtime[kCurrentFrame], false,           runtime[kPrevious], runtime[kExecutable],
             runtime[kInstruction],  runtime[kOwner], runtime[kFilename], runtime[kQualname]};
  return true;
}

// Writes texts as UTF-8, and bytes that Python could not decode as they were.
class Utf8 {
 public:
  Utf8(char* text, std::size_t size) : at_(text), end_(text + size - 1) {}
  ~Utf8() { *at_ = '\0'; }
  Utf8(const Utf8&) = delete;
  Utf8& operator=(const Utf8&) = delete;

  void Add(std::uint32_t point) {
    if (point < 0x80) return Put(&point, 1);
    if (point >= 0xdc80 && point <= 0xdcff) {
      const std::uint32_t byte = point & 0xff;
      return Put(&byte, 1);
    }
    const std::size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    std::uint32_t bytes[4];
    for (std::size_t i = size; i-- > 1; point >>= 6) bytes[i] = 0x80 | (point & 0x3f);
    bytes[0] = (0xf00u >> size & 0xff) | point;
    Put(bytes, size);
  }

 private:
  void Put(const std::uint32_t* bytes, std::size_t size) {
    if (at_ + size > end_) end_ = at_;
    for (std::size_t i = 0; i < size && at_ < end_; ++i) *at_++ = static_cast<char>(bytes[i]);
  }

  char* at_;
  char* end_;
};

bool Read(const void* object, char* text, std::size_t size) {
  if (object == nullptr || At<const void*>(object, kType) != found.text_type) return false;
  const auto length = At<std::uint64_t>(object, kTextLength);
  const auto state = At<std::uint32_t>(object, kTextState);
  const std::uint32_t kind = state >> 2 & 7;
  const bool is_compact = (state >> 5 & 1) != 0;
  const bool is_ascii = (state >> 6 & 1) != 0;
  if (!is_compact || (kind != 1 && kind != 2 && kind != 4)) return false;
  const char* data = static_cast<const char*>(object) + (is_ascii ? kAsciiData : kWideData);
  Utf8 out(text, size);
  for (std::uint64_t i = 0; i < length && i < size; ++i) {
    out.Add(kind == 1   ? At<std::uint8_t>(data, i)
            : kind == 2 ? At<std::uint16_t>(data, 2 * i)
                        : At<std::uint32_t>(data, 4 * i));
  }
  return true;
}

}  // namespace

bool PythonStack::Find(char* version, std::size_t size) {
  const char* (*get_version)() = nullptr;
  Look("Py_GetVersion", &get_version);
  if (get_version == nullptr) return true;
  // "3.13.0 experimental free-threading build (main, Oct  7 2024) [GCC 12.2.0]"
  const char* rest = std::strchr(get_version(), '(');
  const std::ptrdiff_t length = rest != nullptr ? rest - get_version() : 0;
  std::snprintf(version, size, "%.*s", static_cast<int>(length > 0 ? length - 1 : length),
                get_version());
  const unsigned long* number = nullptr;
  Look("Py_Version", &number);
  Look("Py_IsInitialized", &found.is_initialized);
  Look("PyGILState_GetThisThreadState", &found.this_thread);
  Look("PyUnstable_InterpreterFrame_GetLine", &found.line_of);
  Look("PyCode_Type", &found.code_type);
  Look("PyUnicode_Type", &found.text_type);
  const bool is_complete = number != nullptr && found.is_initialized != nullptr &&
                           found.this_thread != nullptr && found.line_of != nullptr &&
                           found.code_type != nullptr && found.text_type != nullptr;
  if (!is_complete || !FindLayout(static_cast<std::uint32_t>(*number >> 16), &found.layout)) {
    return false;
  }
  is_found.store(true, std::memory_order_release);
  return true;
}

PythonStack::Frame PythonStack::Innermost() {
  if (!is_found.load(std::memory_order_acquire) || found.is_initialized() == 0) return nullptr;
  const void* thread = found.this_thread();
  if (thread == nullptr) return nullptr;
  const auto current = At<const void*>(thread, found.layout.current_frame);
  if (!found.layout.is_indirect || current == nullptr) return static_cast<Frame>(current);
  return At<Frame>(current, 0);
}

PythonStack::Frame PythonStack::CallerOf(Frame frame) {
  return At<Frame>(frame, found.layout.previous);
}

bool PythonStack::IsOfLoop(Frame frame) { return frame[found.layout.owner] == kOwnedByLoop; }

PythonStack::Place PythonStack::PlaceOf(Frame frame) {
  return {frame, At<std::uintptr_t>(frame, found.layout.instruction)};
}

bool PythonStack::IsAt(const Place* places, std::size_t count) {
  Frame frame = count > 0 ? Innermost() : nullptr;
  const Layout layout = found.layout;
  for (std::size_t i = 0; i < count; ++i) {
    while (frame != nullptr && frame[layout.owner] == kOwnedByLoop) {
      frame = At<Frame>(frame, layout.previous);
    }
    if (frame == nullptr || frame != places[i].frame ||
        At<std::uintptr_t>(frame, layout.instruction) != places[i].instruction) {
      return false;
    }
    frame = At<Frame>(frame, layout.previous);
  }
  return true;
}

bool PythonStack::Describe(Frame frame, Function* function) {
  const auto code = At<const void*>(frame, found.layout.executable);
  if (code == nullptr || At<const void*>(code, kType) != found.code_type) return false;
  if (!Read(At<const void*>(code, found.layout.filename), function->file, sizeof(function->file)) ||
      !Read(At<const void*>(code, found.layout.qualname), function->name, sizeof(function->name))) {
    return false;
  }
  function->line = found.line_of(frame);
  return true;
}

}  // namespace cuguest::audit
