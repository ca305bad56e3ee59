// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/party.h"

#include <string>
#include <utility>

#include "audit/system_object.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(audit_party)

namespace {

namespace audit = cuguest::audit;

}  // namespace

BOOST_AUTO_TEST_CASE(names) {
  const std::string packages = "/venv/lib/python3.12/site-packages/";
  for (const auto& [path, party] : std::initializer_list<std::pair<std::string, std::string>>{
           {"/bin/host", "/bin/host"},
           {"host", "host"},
           {"/usr/local/cuda/lib64/libcublas.so.13.0.0.19",
            "/usr/local/cuda/lib64/libcublas.so.13.0.0.19"},
           {"/lib/x86_64-linux-gnu/libc.so.6", ""},
           {"/lib64/ld-linux-x86-64.so.2", ""},
           {"/usr/lib/libstdc++.so.6.0.30", ""},
           {"linux-vdso.so.1", ""},
           {"/usr/lib/libcuguest.so.0.2", ""},
           {"/usr/lib/libcuguests.so", "/usr/lib/libcuguests.so"},
           {"/usr/bin/python3.12", "python"},
           {"/usr/lib/libpython3.12.so.1.0", "python"},
           {"/opt/pythonic/app", "/opt/pythonic/app"},
           {"/usr/bin/pythonic", "/usr/bin/pythonic"},
           {"/usr/lib/python3.12/lib-dynload/_ctypes.cpython-312-x86_64-linux-gnu.so", ""},
           {packages + "torch/lib/libc10_cuda.so", "torch"},
           {packages + "torch/_C.cpython-312-x86_64-linux-gnu.so", "torch"},
           {packages + "nvidia/cublas/lib/libcublas.so.12", "nvidia/cublas"},
           {packages + "nvidia/cu13/lib/libcufft.so.12", "nvidia/cu13"},
           {packages + "cupy/cuda/memory.so", "cupy"},
           {packages + "cupy_backends/cuda/libs/cublas.so", "cupy"},
           {packages + "cupy_backends/cuda/api/runtime.so", ""},
           {packages + "cuguest/_core.abi3.so", ""},
           {packages + "cuda/bindings/driver.so", ""},
           {packages + "jaxlib/libjax_common.so", "jax"},
           {packages + "jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax"},
           {packages + "scipy.libs/libopenblas.so", "scipy"},
           {packages + "torch/lib/libgomp-a34b3233.so.1", ""},
           {packages + "_single.so", packages + "_single.so"},
           {"/usr/lib/python3/dist-packages/numpy/core/_multiarray.so", "numpy"},
           {packages + "jax_cuda13_plugin/_mlir.so", "jax"},
           // Names that only begin as those of the system.
           {"/opt/libcuda-tools.so", "/opt/libcuda-tools.so"},
           {"/opt/libcudart.solver.so", "/opt/libcudart.solver.so"},
           {"/opt/libnvidia-mine.so", "/opt/libnvidia-mine.so"},
           {"/opt/libompute.so", "/opt/libompute.so"},
           {"/opt/libomp-solver.so", "/opt/libomp-solver.so"},
           {"/opt/libffi_gpu.so", "/opt/libffi_gpu.so"},
           {"/opt/libgcc_sx.so", "/opt/libgcc_sx.so"},
           {"/opt/libc.sound.so", "/opt/libc.sound.so"},
           {"/opt/libc++filter.so", "/opt/libc++filter.so"},
           {"/opt/_ctypes.extra.so", "/opt/_ctypes.extra.so"},
           {"/opt/python3-server", "/opt/python3-server"},
           {"/opt/libpython3gpu.so", "/opt/libpython3gpu.so"},
           {packages + "cupyish/a.so", "cupyish"},
           {packages + "jaxon/a.so", "jaxon"},
           // Of the system, with the names that distributions give them.
           {"/lib/libc-2.31.so", ""},
           {"/usr/lib/libomp.so.5", ""},
           {"/usr/lib/llvm-18/lib/libc++abi.so.1.0", ""},
           {"/usr/lib/libunwind-x86_64.so.8", ""},
           {"[vdso]", ""},
       }) {
    BOOST_TEST(audit::PartyName(path) == party, path);
  }
}

BOOST_AUTO_TEST_CASE(names_of_python) {
  struct Row {
    const char* path;
    std::size_t package;
    const char* party;
    const char* shown;
  };
  for (const auto& [path, package, party, shown] : {
           Row{"/home/me/train.py", 0, "/home/me/train.py", "/home/me/train.py"},
           Row{"/home/me/inner/parts/a.py", 14, "/home/me/inner", "/home/me/inner"},
           Row{"/v/lib/python3.12/site-packages/torch/cuda/a.py", 0, "torch",
               "/v/lib/python3.12/site-packages/torch"},
           Row{"/v/lib/python3.12/site-packages/torch/cuda/a.py", 36, "torch",
               "/v/lib/python3.12/site-packages/torch"},
           Row{"/v/lib/python3.12/site-packages/six.py", 0,
               "/v/lib/python3.12/site-packages/six.py", "/v/lib/python3.12/site-packages/six.py"},
           Row{"/v/site-packages/cuda/bindings/a.py", 0, "", "/v/site-packages/cuda"},
           Row{"/usr/lib/python3.12/threading.py", 0, "", "/usr/lib/python3.12/threading.py"},
           Row{"/usr/lib64/python3.13t/ctypes/__init__.py", 26, "", "/usr/lib64/python3.13t/cty"},
           Row{"<frozen runpy>", 0, "", "<frozen runpy>"},
           Row{"<string>", 0, "<string>", "<string>"},
           Row{"/lib/python3.12-x/a.py", 0, "/lib/python3.12-x/a.py", "/lib/python3.12-x/a.py"},
           Row{"/lib/pythonic/a.py", 0, "/lib/pythonic/a.py", "/lib/pythonic/a.py"},
       }) {
    BOOST_TEST(audit::PartyName(path, "", package) == party, path);
    audit::Object object;
    object.path = path;
    object.package = package;
    BOOST_TEST(audit::PackageOf(object) == shown, path);
  }
}

// What a file is called says nothing where the object has a soname.
BOOST_AUTO_TEST_CASE(sonames) {
  using audit::SystemRole;
  struct Row {
    const char* soname;
    const char* path;
    SystemRole role;
  };
  for (const auto& [soname, path, role] : {
           Row{"libcuda.so.1", "/usr/lib/libcuda.so.580.95.05", SystemRole::kDriver},
           Row{"libcuda.so.1", "/build/libcuda-11.2.so", SystemRole::kDriver},
           Row{"libnvidia-ptxjitcompiler.so.1", "/usr/lib/x.so", SystemRole::kDriver},
           Row{"", "/usr/lib/libcuda.so.1", SystemRole::kDriver},
           Row{"libcudart.so.13", "/opt/libcudart.so.13.0.96", SystemRole::kRuntime},
           Row{"", "/torch/lib/libcudart-80664282.so.10.2", SystemRole::kRuntime},
           Row{"libcupti.so.13", "/opt/libcupti.so.2025.3", SystemRole::kTool},
           Row{"", "/build/libcuguest-audit.so", SystemRole::kTool},
           Row{"libc.so.6", "/lib/libc-2.31.so", SystemRole::kPassesOn},
           Row{"libomp.so", "/opt/libmine.so", SystemRole::kPassesOn},
           Row{"libmine.so.1", "/opt/libcuda.so.1", SystemRole::kNone},
           Row{"libmine.so.1", "/opt/libc.so.6", SystemRole::kNone},
           Row{"libcuda-tools.so", "/opt/libcuda-tools.so", SystemRole::kNone},
           Row{"libcudart.solver.so", "/opt/libcudart.solver.so", SystemRole::kNone},
           Row{"libnvidia-mine.so", "/opt/libnvidia-mine.so", SystemRole::kNone},
           Row{"libcuda_utils.so.1", "/opt/libcuda_utils.so.1", SystemRole::kNone},
           Row{"libpython3.12.so.1.0", "/usr/lib/libpython3.12.so.1.0", SystemRole::kInterpreter},
           Row{"", "/usr/bin/python3.13t", SystemRole::kInterpreter},
           Row{"", "", SystemRole::kNone},
       }) {
    BOOST_TEST((audit::RoleOf(soname, path) == role), soname << " " << path);
  }
}

BOOST_AUTO_TEST_CASE(objects_of_one_party) {
  audit::Parties parties;
  parties.AddObject(1, {"/bin/host", ""});
  parties.AddObject(2, {"/v/site-packages/torch/a.so", ""});
  parties.AddObject(3, {"/v/site-packages/torch/b.so", ""});
  parties.AddObject(4, {"/lib/libc.so.6", ""});
  parties.AddObject(9, {"/bin/host", ""});  // loaded again
  BOOST_TEST(parties.Of(1) != 0u);
  BOOST_TEST(parties.Of(2) == parties.Of(3));
  BOOST_TEST(parties.Of(1) != parties.Of(2));
  BOOST_TEST(parties.Of(1) == parties.Of(9));
  for (const std::uint32_t none : {0u, 4u, 5u, 10u, ~0u}) {
    BOOST_TEST(parties.Of(none) == 0u);
  }
  parties.AddObject(~0u, {"/lib/far.so", ""});
  BOOST_TEST(parties.objects().size() == 10u);
}

BOOST_AUTO_TEST_SUITE_END()
