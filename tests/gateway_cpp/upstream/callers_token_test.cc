#include "upstream/callers_token.h"

#include <gtest/gtest.h>

namespace penstock::upstream {
namespace {

TEST(CallersTokenTest, IsWhatAgentsGiveTheReplica) {
  // As tests/control/test_replica_tokens.py has it.
  EXPECT_EQ(callers_token("5ecre7", "mini-1"),
            "0cbb715634a4049ea7a779f19de814be85fb739681e5a8fc84c8becbc05bf13c");
}

TEST(CallersTokenTest, IsAnotherForEachReplicaAndCluster) {
  EXPECT_NE(callers_token("5ecre7", "mini-1"), callers_token("5ecre7", "mini-2"));
  EXPECT_NE(callers_token("5ecre7", "mini-1"), callers_token("other", "mini-1"));
}

TEST(CallersTokenTest, IsNoneWithoutAClusterToken) { EXPECT_EQ(callers_token("", "mini-1"), ""); }

}  // namespace
}  // namespace penstock::upstream
