// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The channel of an audited process that has ended, or was overwritten by it: any records. The
// reader comes to the end, and what it passes on can be analysed.

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "audit/analysis.h"
#include "audit/channel.h"
#include "audit/channel_reader.h"
#include "test/fuzz/input.h"

namespace {

using namespace cuguest::audit;

constexpr int kNoProcess = 0x7fffffff;  // more than any system has
constexpr std::uint32_t kSlots = 64;

// A ring that was gone round, or not.
std::string ChannelOf(cuguest_fuzz::Input input) {
  std::string file(sizeof(ChannelHeader) + kSlots * sizeof(ChannelSlot), '\0');
  auto* header = reinterpret_cast<ChannelHeader*>(file.data());
  auto* slots = reinterpret_cast<ChannelSlot*>(file.data() + sizeof(ChannelHeader));
  header->magic.store(kChannelMagic);
  header->slots = kSlots;
  header->forked = input.Below(2);
  header->exit_ns.store(input.Below(2));
  const bool has_wrong_head = input.Below(8) == 0;
  std::uint64_t ticket = 0;
  for (; !input.empty() && ticket < kSlots; ++ticket) {
    ChannelSlot& slot = slots[ticket];
    const unsigned kind = input.Byte();
    slot.kind = static_cast<RecordKind>(kind % 10);
    slot.slots = static_cast<std::uint16_t>(1 + (kind & 0x40 ? input.Below(5) - 1 : 0));
    slot.size = kind & 0x20 ? input.Word() : input.Below(kSlotBody + 1);
    slot.sequence.store(kind & 0x80 ? input.Byte() : ticket + 1);
    for (unsigned i = 0, size = input.Below(kSlotBody + 1); i < size; ++i) {
      slot.body[i] = input.Byte();
    }
  }
  header->head.store(has_wrong_head ? ~std::uint64_t{0} - ticket : ticket);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes = ChannelOf({data, size});
  const int memory = memfd_create("cuguest-channel-fuzz", MFD_CLOEXEC);
  FUZZ_CHECK(memory >= 0 && write(memory, bytes.data(), bytes.size()) == ssize_t(bytes.size()));
  ChannelReader reader;
  FUZZ_CHECK(reader.Add(memory, kNoProcess, ""));
  close(memory);

  Analysis analysis(/*forked=*/false);
  std::size_t objects = 1;
  do {
    reader.Poll([&](const ChannelProcess& process, const Event& event) {
      for (; objects < process.objects.size(); ++objects) {
        analysis.OnObject(static_cast<std::uint32_t>(objects), process.objects[objects]);
      }
      for (const Frame& frame : *event.chain) FUZZ_CHECK(frame.object < process.objects.size());
      analysis.OnEvent(event);
    });
    FUZZ_CHECK(reader.processes().size() == 1);
  } while (!reader.AllEnded());
  return 0;
}
