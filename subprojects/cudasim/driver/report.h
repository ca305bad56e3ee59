// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the command `cudasim` asks of a process, through environment variables that are read when
// the driver is loaded, and what the process reports at its end:
//
//   CUDASIM_DEVICES=4                 as Sim::SetDeviceCount
//   CUDASIM_FAIL=cuMemAlloc:2:2,...   ENTRY:NTH:CODE, as Sim::FailCall; the code is a number
//   CUDASIM_UNKNOWN_KERNELS=skip      as Sim::SkipUnknownKernels
//   CUDASIM_REPORT=FOLDER             write FOLDER/PID: "running" at the start, the report at the
//   end
//
// A value that cannot be used ends the process with a message; a report that cannot be written is a
// message alone. The report is lines of
//
//   program PATH
//   driver VERSION DEVICES
//   call COUNT ENTRY
//   live COUNT WHAT
//   missing ENTRY VERSION   cuGetProcAddress was asked for it, and did not find it
//   pending ENTRY           a call of it was to fail, and was not made
//   unmodelled COUNT SYMBOL it was called, and is not modelled
//   skipped COUNT KERNEL    a kernel without a host function
//   private OBJECT          it asked for a private table of the driver
//   end
//
// It is written when the process's libraries end, after its own exit handlers. A panic writes it
// before it aborts, with "panic" in place of what is alive, since the thread may hold a lock of the
// driver's. A process that ends by a signal or by _exit leaves "running". A child that was forked
// before cuInit reports by itself; one that was forked after cuInit cannot use the driver, and does
// not report.

#ifndef CUDASIM_DRIVER_REPORT_H_
#define CUDASIM_DRIVER_REPORT_H_

#include <string>

namespace cudasim::driver {

void NoteMissing(const char* entry, int version);

// That `object` asked for a private table of the driver. Said to stderr, too, for the first one:
// its calls will fail, if it is what a statically linked CUDA runtime does.
void NotePrivateTable(const std::string& object);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_REPORT_H_
