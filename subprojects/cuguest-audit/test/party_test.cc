// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/party.h"

#include <string>
#include <utility>

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
           {packages + "cuda/bindings/driver.so", ""},
           {packages + "jaxlib/libjax_common.so", "jax"},
           {packages + "jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax"},
           {packages + "scipy.libs/libopenblas.so", "scipy"},
           {packages + "torch/lib/libgomp-a34b3233.so.1", ""},
           {packages + "_single.so", packages + "_single.so"},
           {"/usr/lib/python3/dist-packages/numpy/core/_multiarray.so", "numpy"},
       }) {
    BOOST_TEST(audit::PartyName(path) == party, path);
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
