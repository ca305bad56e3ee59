// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/call_rule.h"

#include <set>
#include <string_view>

#include "audit/text.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(audit_call_rule)

namespace {

namespace audit = cuguest::audit;
using audit::CallClass;
using audit::CallKind;
using audit::Purpose;

// What NVIDIA's libcudart.so exports.
constexpr std::string_view kRuntime[] = {
#define X(name) #name,
#include "subprojects/cudasim/runtime/names.inc"
#undef X
};

bool HasOneOf(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_frees_is_a_query) {
  std::set<std::string_view> seen;
  for (const std::string_view name : kRuntime) {
    const bool frees = HasOneOf(
        name, {"Free", "Destroy", "Unload", "Unregister", "IpcClose", "UserObjectRelease"});
    // Nodes of graphs and the streams of EGL are in no context; __cuda is the compiler's.
    if (!frees || HasOneOf(name, {"Node", "EGL", "__cuda", "cudaGL"})) continue;
    seen.insert(audit::NameAsWritten(name));
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST((audit::PurposeOf(name) == Purpose::kFrees));
      BOOST_TEST(audit::IsQuery(name));
    }
  }
  for (const std::string_view name : {"cudaFree", "cudaDestroyTextureObject", "cudaFreeAsync"}) {
    BOOST_TEST(seen.count(name) == 1);
  }
}

BOOST_AUTO_TEST_CASE(what_asks_is_a_query) {
  for (const std::string_view name : kRuntime) {
    if (HasOneOf(name, {"Get", "Query", "IsCapturing"}) && audit::StartsWith(name, "cuda")) {
      BOOST_TEST_CONTEXT(name) BOOST_TEST(audit::IsQuery(name));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_makes_is_none) {
  for (const std::string_view name : kRuntime) {
    if (HasOneOf(name, {"Malloc", "Create", "Load", "Memcpy", "Memset", "Launch", "Alloc"}) &&
        !HasOneOf(name, {"Get"}) && audit::StartsWith(name, "cuda")) {
      BOOST_TEST_CONTEXT(name) BOOST_TEST(!audit::IsQuery(name));
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_of_pools_is_no_contexts) {
  for (const std::string_view name : {"cudaMallocAsync", "cuMemAllocAsync_ptsz",
                                      "cudaMallocFromPoolAsync", "cuMemAllocFromPoolAsync"}) {
    BOOST_TEST_CONTEXT(name) BOOST_TEST((audit::RuleOf(name).call_class == CallClass::kWork));
  }
  for (const std::string_view name : {"cudaFreeAsync", "cuMemFreeAsync"}) {
    BOOST_TEST_CONTEXT(name) BOOST_TEST((audit::RuleOf(name).call_class == CallClass::kCommon));
  }
}

// The same one for each name that a source may give a function.
BOOST_AUTO_TEST_CASE(names_with_versions) {
  BOOST_TEST(audit::NameAsWritten("cuStreamBeginCapture_v2_ptsz") == "cuStreamBeginCapture");
  BOOST_TEST(audit::NameAsWritten("cudaMemcpy_v3020") == "cudaMemcpy");
  BOOST_TEST(audit::NameAsWritten("cudaMalloc3D") == "cudaMalloc3D");
  BOOST_TEST(audit::NameAsWritten("123") == "123");
  BOOST_TEST(audit::NameAsWritten("") == "");
  BOOST_TEST((audit::KindOf("cuCtxDestroy_v2") == CallKind::kDestroy));
  BOOST_TEST((audit::KindOf("cuCtxCreate_v4") == CallKind::kCreate));
  BOOST_TEST((audit::KindOf("cudaStreamGetCaptureInfo_v3_ptsz") == CallKind::kAskForCapture));
  BOOST_TEST(audit::SettingOf("cudaDeviceSetLimit_v3020") == "Limit");
  BOOST_TEST(audit::SettingOf("cudaDeviceGetLimit") == "");
}

BOOST_AUTO_TEST_SUITE_END()
