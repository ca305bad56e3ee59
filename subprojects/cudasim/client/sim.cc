// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cudasim/sim.h"

#include "client/control_table.h"
#include "driver/control.h"

namespace cudasim {
namespace {

// Of the process's driver, which stays loaded.
const driver::Control* GetControl() {
  static const auto* const control = ControlTable<driver::Control>(
      "libcuda.so.1", 0, driver::kControlSymbol, driver::kControlVersion);
  return control;
}

}  // namespace

bool Sim::IsActive() { return GetControl() != nullptr; }

void Sim::SetDeviceCount(int count) {
  if (IsActive()) GetControl()->set_device_count(count);
}

void Sim::SetDriverVersion(int version) {
  if (IsActive()) GetControl()->set_driver_version(version);
}

void Sim::HideEntry(const char* entry) {
  if (IsActive()) GetControl()->hide_entry(entry);
}

void Sim::SupportExecAffinity(bool supported) {
  if (IsActive()) GetControl()->support_exec_affinity(supported);
}

void Sim::SupportCig(bool supported) {
  if (IsActive()) GetControl()->support_cig(supported);
}

void Sim::SupportPageableAccess(bool supported) {
  if (IsActive()) GetControl()->support_pageable_access(supported);
}

void Sim::SupportMemoryPools(bool supported) {
  if (IsActive()) GetControl()->support_memory_pools(supported);
}

void Sim::SetNextContextId(std::uint64_t id) {
  if (IsActive()) GetControl()->set_next_context_id(id);
}

void Sim::FailCall(const char* entry, unsigned nth, CUresult code, bool from_any_thread) {
  if (IsActive()) GetControl()->fail_call(entry, nth, code, from_any_thread);
}

void Sim::ClearFaults() {
  if (IsActive()) GetControl()->clear_faults();
}

void Sim::OnEveryCall(void (*hook)(const char*)) {
  if (IsActive()) GetControl()->on_every_call(hook);
}

std::uint64_t Sim::Calls(const char* entry) { return IsActive() ? GetControl()->calls(entry) : 0; }

std::uint64_t Sim::TotalCalls() { return IsActive() ? GetControl()->total_calls() : 0; }

void Sim::ResetCalls() {
  if (IsActive()) GetControl()->reset_calls();
}

std::uint64_t Sim::UnmodelledCalls(const char* symbol) {
  return IsActive() ? GetControl()->unmodelled_calls(symbol) : 0;
}

const char* Sim::EntryName(size_t index) {
  return IsActive() ? GetControl()->entry_name(index) : nullptr;
}

SimLive Sim::Live() { return IsActive() ? GetControl()->live() : SimLive{}; }

void Sim::SkipUnknownKernels(bool skip) {
  if (IsActive()) GetControl()->skip_unknown_kernels(skip);
}

std::uint64_t Sim::SkippedLaunches(const char* name) {
  return IsActive() ? GetControl()->skipped_launches(name) : 0;
}

void Sim::ScheduleWork(std::uint64_t seed, unsigned calls) {
  if (IsActive()) GetControl()->schedule_work(seed, calls);
}

void Sim::RegisterKernel(const char* name, SimKernel kernel) {
  if (IsActive()) GetControl()->register_kernel(name, kernel);
}

bool Sim::FindVariable(const char* name, void** address, size_t* size) {
  return IsActive() && GetControl()->find_variable(name, address, size);
}

bool Sim::KernelReaches(const void* address, size_t bytes) {
  return IsActive() && GetControl()->kernel_may_access(address, bytes);
}

std::uint64_t Sim::KernelContextId() { return IsActive() ? GetControl()->kernel_context_id() : 0; }

CUresult Sim::ReadTexture(CUtexObject texture, float x, float y, float texel[4]) {
  return IsActive() ? GetControl()->read_texture(texture, x, y, texel) : CUDA_SUCCESS;
}

CUresult Sim::ReadSurface(CUsurfObject surface, size_t x, size_t y, void* data, size_t bytes) {
  return IsActive() ? GetControl()->read_surface(surface, x, y, data, bytes) : CUDA_SUCCESS;
}

CUresult Sim::WriteSurface(CUsurfObject surface, size_t x, size_t y, const void* data,
                           size_t bytes) {
  return IsActive() ? GetControl()->write_surface(surface, x, y, data, bytes) : CUDA_SUCCESS;
}

void Sim::Deinitialize() {
  if (IsActive()) GetControl()->deinitialize();
}

}  // namespace cudasim
