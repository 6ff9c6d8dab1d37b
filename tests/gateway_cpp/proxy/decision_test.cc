// What a record says of where its request was, however often that changed.
#include "proxy/decision.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::proxy {
namespace {

void walk_down(RequestRecord& record, bool passes_over) {
  for (size_t i = 0; i < kMostStays; ++i) {
    const std::string rung = "rung-" + std::to_string(i);
    if (passes_over) {
      record.pass_over(rung, "no_replica", 0);
    } else {
      record.stay(Way::kRung, rung, {}, 0);
      record.leave(rung, "queue_full");
    }
  }
}

class StaysTest : public testing::TestWithParam<bool> {};

TEST_P(StaysTest, TellsWhatWasAskedForThoughManyRungsAndACanaryDidNotHelp) {
  RequestRecord record;
  record.pass_over("candidate", "no_replica", 0);
  StayRecord& asked = record.stay(Way::kNamed, "mini", {}, 0);
  asked.slo.errors = asked.has_turn = true;
  asked.turn.ready = 3;
  record.leave("mini", "queue_full");
  walk_down(record, GetParam());
  record.return_to("mini", {}, 0);
  EXPECT_EQ(record.stays.size(), kMostStays);
  EXPECT_EQ(record.deployment(), "mini");
  EXPECT_TRUE(record.slo().errors);
  EXPECT_EQ(record.here()->turn.ready, 3U);
}

INSTANTIATE_TEST_SUITE_P(Rungs, StaysTest, testing::Bool());

}  // namespace
}  // namespace penstock::proxy
