// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What happens to the process while its threads work: it forks, and libraries come and go.

#include <sys/wait.h>
#include <unistd.h>

#include "cuguest/context_guard.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"
#include "test/interop/storm/operations.h"
#include "test/process/plugin.h"

namespace storm {
namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::SharedContext;

// Whatever the other threads were doing.
bool IsRefusedInChild(Worker* worker, const ContextRef& context) {
  static_cast<void>(worker->world().marks().Find(context));
  return ContextGuard(context).result() == CUDA_ERROR_NOT_INITIALIZED &&
         !SharedContext::Attach(context).ok();
}

void Fork(Worker& worker) {
  const ContextRef& context = worker.PickContext();
  const pid_t child = fork();
  // The child allocates nothing: the address sanitizer's locks are as other threads had them.
  if (child == 0) _exit(IsRefusedInChild(&worker, context) ? 0 : 1);
  Require(child >= 0, "the process can be forked");
  int status = 0;
  Require(waitpid(child, &status, 0) == child && status == 0, "the child's calls are refused");
}

// A library that embeds cuguest is loaded, attaches, has a value, and is unloaded.
void ComeAndGo(Worker& worker) {
#if defined(__SANITIZE_THREAD__)
  // It does not see the dynamic linker's lock: a library at the addresses of one that another
  // thread had, and that was unloaded, is a race to it. So this one stays loaded.
  static const cuguest_test::Plugin s_stays("plugin_a");
#endif
  const ContextRef& context = worker.PickContext();
  const cuguest_test::Plugin plugin("plugin_a");
  void* const reference = plugin.Attach(context.get());
  Require(reference != nullptr, "the library attaches");
  Require(plugin.Get(reference) == context.get(), "to the context that it was given");
  Require(plugin.MakeValue(context.get()), "it has a value there");
  Require(plugin.Detach(reference), "and detaches");
}

}  // namespace

Operations ProcessOperations() { return {{"fork", 1, &Fork}, {"plugin", 1, &ComeAndGo}}; }

}  // namespace storm
