// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/finding.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "audit/ledger.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(audit_finding)

namespace {

namespace audit = cuguest::audit;

}  // namespace

BOOST_AUTO_TEST_CASE(kinds_have_names_of_their_own) {
  std::set<std::string> names;
  std::set<std::string> identifiers;
  for (std::size_t i = 0; i < audit::kFindingKinds; ++i) {
    names.insert(audit::Name(static_cast<audit::FindingKind>(i)));
    identifiers.insert(audit::Identifier(static_cast<audit::FindingKind>(i)));
  }
  BOOST_TEST(names.size() == audit::kFindingKinds);
  BOOST_TEST(identifiers.size() == audit::kFindingKinds);
  for (const std::string& identifier : identifiers) {
    BOOST_TEST(identifier.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(ledger_counts_what_it_drops) {
  audit::Ledger ledger;
  audit::Charge charge;
  charge.finding.count = 2;
  for (std::size_t i = 0; i < audit::kLedgerLimit; ++i) {
    charge.finding.culprit = {1, i};
    ledger.Add(charge);
    ledger.Add(charge);
  }
  BOOST_TEST(ledger.dropped() == 0u);
  for (std::size_t i = 0; i < 3; ++i) {
    charge.finding.culprit = {2, i};
    ledger.Add(charge);
  }
  BOOST_TEST(ledger.dropped() == 6u);
  BOOST_TEST(ledger.Findings({}).size() == audit::kLedgerLimit);
}

BOOST_AUTO_TEST_CASE(text_has_what_the_finding_has) {
  const std::vector<audit::Object> objects = {
      {"", ""}, {"/bin/host", ""}, {"/lib/libthird.so", ""}};
  audit::Finding finding;
  finding.kind = audit::FindingKind::kReplacedContext;
  finding.call = "cudaSetDevice";
  finding.culprit = {2, 0x4f20};
  finding.victim = {1, 0x10};
  finding.count = 3;
  finding.thread = 2;
  finding.time_ns = 17;
  finding.before = {7, 0, false, {1, 0x20}};
  finding.after = {9, 1, true, {}};
  finding.chain = std::make_shared<audit::Chain>(
      audit::Chain{{2, 0x4f20, 100}, {0, 0xabc, 150}, {1, 0x10, 200}});
  finding.victim_frame = 2;
  finding.victim_chain = std::make_shared<audit::Chain>(audit::Chain{{1, 0x30, 200}});
  BOOST_TEST(audit::Text(finding, objects) ==
             "replaced-context by cudaSetDevice\n"
             "  culprit /lib/libthird.so+0x4f20\n"
             "  victim /bin/host+0x10\n"
             "  before 7 (of device 0, by /bin/host+0x20)\n"
             "  after 9 (primary of device 1)\n"
             "  count 3, first in thread 2 at 17 ns\n"
             "  result 0, device -1, depth 0\n"
             "  chain\n"
             "    /lib/libthird.so+0x4f20\n"
             "    0xabc\n"
             "    /bin/host+0x10\n"
             "  victim's chain\n"
             "    /bin/host+0x30\n");
}

BOOST_AUTO_TEST_SUITE_END()
