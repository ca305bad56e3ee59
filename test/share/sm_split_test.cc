// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/sm_split.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cudasim/sim.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(sm_split)

namespace {

using cudasim::Sim;
using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::SmCount;
using cuguest::SmCountOf;
using cuguest::SmSplit;
using cuguest_test::NeedsDriver;
using cuguest_test::NeedsDriverBefore;
using cuguest_test::OnlySim;

constexpr char kWhy[] = "cuDevSmResourceSplitByCount";
const Device kFirst = Device::Borrow(0);

unsigned Number(SmCount count) { return static_cast<unsigned>(count); }
unsigned All() { return Number(SmCountOf(kFirst).value()); }

bool Says(const absl::Status& status, const std::string& words) {
  return absl::StrContains(std::string(status.message()), words);
}

void CheckIsSplit(const SmSplit& split, unsigned least) {
  unsigned sum = Number(split.rest.count());
  BOOST_TEST((split.rest.device() == kFirst));
  for (const SmSplit::Part& part : split.parts) {
    BOOST_TEST((part.device() == kFirst));
    BOOST_TEST(Number(part.count()) >= least);
    BOOST_TEST((part.count() == split.parts.front().count()));
    sum += Number(part.count());
  }
  BOOST_TEST(sum == All());
}

}  // namespace

BOOST_AUTO_TEST_CASE(parts_have_what_was_asked_for, *NeedsDriver(12040, kWhy)) {
  for (const unsigned least : {1u, 8u, 9u, 16u, 60u, All()}) {
    BOOST_TEST_CONTEXT("at least " << least) {
      const SmSplit one = SmSplit::Of(kFirst, SmCount{least}, 1).value();
      BOOST_TEST(one.parts.size() == 1u);
      CheckIsSplit(one, least);
      const SmSplit most = SmSplit::Of(kFirst, SmCount{least}).value();
      BOOST_TEST(most.parts.size() >= 1u);
      BOOST_TEST((most.parts.front().count() == one.parts.front().count()));
      CheckIsSplit(most, least);
    }
  }
  BOOST_TEST(!PrimaryContext::Query(kFirst).active);
}

BOOST_AUTO_TEST_CASE(the_whole_device_leaves_no_rest, *NeedsDriver(12040, kWhy)) {
  const SmSplit split = SmSplit::Of(kFirst, SmCount{All()}).value();
  BOOST_TEST(split.parts.size() == 1u);
  BOOST_TEST((split.rest.count() == SmCount{0}));
  BOOST_TEST((SmSplit::Part().count() == SmCount{0}));
}

BOOST_AUTO_TEST_CASE(finer_parts_ignore_coscheduling, *NeedsDriver(12040, kWhy)) {
  const SmSplit split =
      SmSplit::Of(kFirst, SmCount{2}, 3, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING).value();
  CheckIsSplit(split, 2);
  BOOST_TEST(split.parts.size() == 3u);
  const SmSplit coarse = SmSplit::Of(kFirst, SmCount{2}, 3).value();
  BOOST_TEST(Number(split.parts[0].count()) <= Number(coarse.parts[0].count()));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused, *NeedsDriver(12040, kWhy)) {
  const unsigned all = All();
  const unsigned fit = static_cast<unsigned>(SmSplit::Of(kFirst, SmCount{16})->parts.size());
  const struct {
    unsigned least;
    unsigned parts;
    unsigned flags;
    std::string words;
  } kRows[] = {
      {0, 1, 0, "into 1 parts of at least 0 SMs: ask for at least one part of at least one SM"},
      {16, 0, 0, "into 0 parts of at least 16 SMs: ask for at least one"},
      {all + 1, 1, 0, absl::StrCat("of at least ", all + 1, " SMs of its ", all)},
      {all + 1, SmSplit::kAsManyAsFit, 0,
       absl::StrCat("as many parts as fit of at least ", all + 1)},
      {16, fit + 1, 0, absl::StrCat("of its ", all, ", of which ", fit, " fit")},
      {16, 4000000000u, 0, "of which "},
      {16, 1, 0x77, "CUDA_ERROR_INVALID_VALUE"},
  };
  for (const auto& row : kRows) {
    const absl::Status status =
        SmSplit::Of(kFirst, SmCount{row.least}, row.parts, row.flags).status();
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument), status.ToString());
    BOOST_TEST(Says(status, "split the SMs, device 0, into "), status.ToString());
    BOOST_TEST(Says(status, row.words), status.ToString());
  }
  const absl::Status status = SmSplit::Of(Device::Borrow(77), SmCount{16}).status();
  BOOST_TEST((status.code() == absl::StatusCode::kNotFound), status.ToString());
  BOOST_TEST(Says(status, "device 77"));
}

BOOST_AUTO_TEST_CASE(parts_have_at_least_requested_sizes, *NeedsDriver(12040, kWhy)) {
  const unsigned unit = Number(SmSplit::Of(kFirst, SmCount{1}, 1)->parts[0].count());
  const std::vector<SmCount> sizes = {SmCount{1}, SmCount{3 * unit}, SmCount{2 * unit - 1}};
  const SmSplit split = SmSplit::OfSizes(kFirst, sizes).value();
  BOOST_TEST_REQUIRE(split.parts.size() == 3u);
  BOOST_TEST(Number(split.parts[0].count()) == unit);
  BOOST_TEST(Number(split.parts[1].count()) == 3 * unit);
  BOOST_TEST(Number(split.parts[2].count()) == 2 * unit);
  BOOST_TEST(Number(split.rest.count()) == All() - 6 * unit);
  for (const SmSplit::Part& part : split.parts) BOOST_TEST((part.device() == kFirst));
  BOOST_TEST(!PrimaryContext::Query(kFirst).active);
}

BOOST_AUTO_TEST_CASE(impossible_sizes_are_refused, *NeedsDriver(12040, kWhy)) {
  const unsigned all = All();
  const struct {
    std::vector<SmCount> sizes;
    std::string words;
  } kRows[] = {
      {{}, "into parts of at least  SMs: ask for at least one part"},
      {{SmCount{16}, SmCount{0}}, "into parts of at least 16, 0 SMs: ask for at least one part"},
      {{SmCount{16}, SmCount{all}}, absl::StrCat("16, ", all, " SMs of its ", all)},
      {{SmCount{4294967295u}, SmCount{4294967295u}}, absl::StrCat("SMs of its ", all)},
  };
  for (const auto& row : kRows) {
    const absl::Status status = SmSplit::OfSizes(kFirst, row.sizes).status();
    BOOST_TEST((status.code() == absl::StatusCode::kInvalidArgument), status.ToString());
    BOOST_TEST(Says(status, row.words), status.ToString());
  }
  const absl::Status status = SmSplit::OfSizes(Device::Borrow(77), {SmCount{16}}).status();
  BOOST_TEST((status.code() == absl::StatusCode::kNotFound), status.ToString());
}

BOOST_AUTO_TEST_CASE(an_older_driver_is_refused,
                     *NeedsDriverBefore(12040, "cuDeviceGetDevResource")) {
  for (const absl::Status& status : {SmSplit::Of(kFirst, SmCount{16}).status(),
                                     SmSplit::OfSizes(kFirst, {SmCount{16}}).status()}) {
    BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status.ToString());
    BOOST_TEST(Says(status, " of CUDA 12.4; driver 550.54 or newer is needed"), status.ToString());
  }
}

BOOST_AUTO_TEST_CASE(any_call_may_fail, *OnlySim() * NeedsDriver(12040, kWhy)) {
  BOOST_TEST(SmSplit::Of(kFirst, SmCount{16}).ok());
  Sim::ResetCalls();
  BOOST_TEST(SmSplit::Of(kFirst, SmCount{16}).ok());
  BOOST_TEST(Sim::TotalCalls() == 3u);
  const struct {
    const char* entry;
    unsigned nth;
  } kCalls[] = {{"cuDeviceGetDevResource", 1},
                {"cuDevSmResourceSplitByCount", 1},
                {"cuDevSmResourceSplitByCount", 2}};
  for (const auto& call : kCalls) {
    Sim::FailCall(call.entry, call.nth, CUDA_ERROR_OPERATING_SYSTEM);
    const absl::Status status = SmSplit::Of(kFirst, SmCount{16}, 2).status();
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_OPERATING_SYSTEM), call.entry);
    BOOST_TEST(Says(status, "device 0, into 2 parts"), status.ToString());
  }
  Sim::ClearFaults();
}

BOOST_AUTO_TEST_CASE(any_call_for_sizes_may_fail, *OnlySim() * NeedsDriver(12040, kWhy)) {
  const std::vector<SmCount> sizes = {SmCount{16}, SmCount{32}};
  BOOST_TEST(SmSplit::OfSizes(kFirst, sizes).ok());
  Sim::ResetCalls();
  BOOST_TEST(SmSplit::OfSizes(kFirst, sizes).ok());
  BOOST_TEST(Sim::TotalCalls() == 3u);
  const bool is_one_call = cuguest_test::HasDriver(13010);
  const struct {
    const char* entry;
    unsigned nth;
  } kCalls[] = {{"cuDeviceGetDevResource", 1},
                {"cuDevSmResourceSplitByCount", 1},
                {is_one_call ? "cuDevSmResourceSplit" : "cuDevSmResourceSplitByCount",
                 is_one_call ? 1U : 2U}};
  for (const auto& call : kCalls) {
    Sim::FailCall(call.entry, call.nth, CUDA_ERROR_OPERATING_SYSTEM);
    const absl::Status status = SmSplit::OfSizes(kFirst, sizes).status();
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_OPERATING_SYSTEM), call.entry);
    BOOST_TEST(Says(status, "device 0, into parts of at least 16, 32 SMs"), status.ToString());
  }
  Sim::ClearFaults();
}

BOOST_AUTO_TEST_SUITE_END()
