#include "base/trace_context.h"

#include <gtest/gtest.h>

#include <array>

namespace penstock::base {
namespace {

const std::string kGood = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, KnowsATraceParentByItsGrammar) {
  EXPECT_TRUE(is_trace_parent(kGood));
  EXPECT_TRUE(is_trace_parent("cc" + kGood.substr(2) + "-what-a-later-version-says"));
  EXPECT_TRUE(is_trace_parent("cc" + kGood.substr(2) + "-" + std::string(200, 'x')));  // 256
  std::string upper = kGood;
  upper[3] = 'A';
  std::string split = kGood;
  split[35] = '_';
  const std::array bad = {std::string(),
                          std::string("\xff"),
                          kGood.substr(0, 54),
                          kGood + "-more",
                          "ff" + kGood.substr(2),
                          "cc" + kGood.substr(2) + "more",
                          "cc" + kGood.substr(2) + "-\xff",
                          "cc" + kGood.substr(2) + "-" + std::string(201, 'x'),
                          "00-" + std::string(32, '0') + kGood.substr(35),
                          kGood.substr(0, 36) + std::string(16, '0') + "-01",
                          kGood.substr(0, 54) + "\x80",
                          upper,
                          split};
  for (const auto& text : bad) EXPECT_FALSE(is_trace_parent(text)) << text;
}

TEST(TraceContext, BeginsANewTraceWhereAClientsMakesNoSense) {
  TraceParents parents;
  EXPECT_EQ(parents.accept(kGood), kGood);
  EXPECT_TRUE(is_trace_parent(parents.accept("")));
  const std::string fresh = parents.accept("\xff");
  EXPECT_TRUE(is_trace_parent(fresh)) << fresh;
  EXPECT_NE(parents.accept("\xff"), fresh);
}

TEST(TraceContext, IsFoundByTheTracesId) {
  EXPECT_EQ(trace_id_of(kGood), "0af7651916cd43dd8448eb211c80319c");
}

}  // namespace
}  // namespace penstock::base
