#include "base/trace_context.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

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

TEST(TraceContext, GoesOnWithAClientsTraceUnderASpanOfItsOwn) {
  const TraceContext context = TraceContexts().accept(kGood);
  EXPECT_EQ(context.id_high, 0x0af7651916cd43ddU);
  EXPECT_EQ(context.id_low, 0x8448eb211c80319cU);
  EXPECT_EQ(context.parent, 0xb7ad6b7169203331U);
  EXPECT_NE(context.span, context.parent);
  EXPECT_TRUE(context.sampled);
}

TEST(TraceContext, IsSampledByOneBitOfTheFlags) {
  TraceContexts contexts;
  for (const char* flags : {"00", "02", "fe"}) {
    EXPECT_FALSE(contexts.accept(kGood.substr(0, 53) + flags).sampled) << flags;
  }
  for (const char* flags : {"01", "03", "ff"}) {
    EXPECT_TRUE(contexts.accept(kGood.substr(0, 53) + flags).sampled) << flags;
  }
}

TEST(TraceContext, BeginsANewTraceWhereAClientsMakesNoSense) {
  TraceContexts contexts;
  const TraceContext one = contexts.accept("");
  const TraceContext other = contexts.accept("\xff");
  EXPECT_NE(one.id_low, other.id_low);
  EXPECT_EQ(one.parent, 0U);
  EXPECT_FALSE(one.sampled);
  EXPECT_TRUE(is_trace_parent(TraceParent(one, one.span).text()));
}

TEST(TraceContext, IsToldToOthersWithTheSpanThatTheyBelongToAndItsFlag) {
  TraceContext context = TraceContexts().accept(kGood);
  const TraceParent told(context, context.parent);
  EXPECT_EQ(told.text(), kGood);
  EXPECT_EQ(told.trace_id(), "0af7651916cd43dd8448eb211c80319c");
  context.sampled = false;
  EXPECT_EQ(TraceParent(context, context.parent).text(), kGood.substr(0, 53) + "00");
}

TEST(TraceContext, HasASpanOfItsOwnForEachAttemptAndItsEngineTheSameEachTime) {
  const TraceContext context = TraceContexts().accept(kGood);
  std::set<std::uint64_t> spans = {0, context.span, context.parent};
  for (unsigned number = 1; number <= 100; ++number) {
    EXPECT_EQ(context.span_of_attempt(number), context.span_of_attempt(number));
    EXPECT_TRUE(spans.insert(context.span_of_attempt(number)).second) << number;
    EXPECT_TRUE(spans.insert(context.span_of_engine(number)).second) << number;
  }
}

}  // namespace
}  // namespace penstock::base
