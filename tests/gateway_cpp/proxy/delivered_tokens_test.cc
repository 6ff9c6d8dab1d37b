#include "proxy/delivered_tokens.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "penstock/v1/inference.pb.h"

namespace penstock::proxy {
namespace {

std::string wire_of(const v1::Chunk& chunk) {
  std::string wire;
  upstream::append_groups(chunk, wire);
  return wire;
}

// What a replica would read of it.
v1::Chunk told_by(std::string_view record) {
  v1::Chunk told;
  upstream::each_recorded(record, [&told](const upstream::TokenGroup& group) {
    v1::TokenGroup& one = *told.add_groups();
    one.set_choice(group.choice);
    v1::TokenGroup ids;
    const std::string size(1, static_cast<char>(group.ids.size()));
    EXPECT_TRUE(ids.ParseFromString("\x12" + size + std::string(group.ids)));
    *one.mutable_token_ids() = ids.token_ids();
    one.set_finish_reason(std::string(group.finish_reason));
    one.set_stop_reason(std::string(group.stop_reason));
  });
  return told;
}

// Groups as engines make them, and as none does.
v1::Chunk some_chunk(std::mt19937& random) {
  const auto below = [&random](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  v1::Chunk chunk;
  for (uint32_t left = below(3); left > 0; --left) {
    v1::TokenGroup& group = *chunk.add_groups();
    if (below(3) == 0) group.set_choice(below(200));
    for (uint32_t ids = below(4) == 0 ? below(24) : 1; ids > 0; --ids) {
      group.add_token_ids(static_cast<uint32_t>(random()) >> below(32));
    }
    if (below(5) == 0) group.set_finish_reason(below(2) == 0 ? "stop" : "length");
    if (below(5) == 0) group.set_stop_reason(std::string(below(40), 's'));
  }
  return chunk;
}

class DeliveredTokensTest : public testing::Test {
 protected:
  bool note(const v1::Chunk& chunk) { return tokens_->note({wire_of(chunk)}); }
  bool note_one(uint32_t id) {
    v1::Chunk chunk;
    chunk.add_groups()->add_token_ids(id);
    return note(chunk);
  }

  runtime::BodyBudget budget_{4UL << 20U};
  std::unique_ptr<DeliveredTokens> tokens_ = std::make_unique<DeliveredTokens>(budget_);
};

TEST_F(DeliveredTokensTest, TellsAnyGroupsAsTheyCame) {
  std::mt19937 random(20'261'127);
  v1::Chunk all;
  size_t ids = 0;
  for (int i = 0; i < 5'000; ++i) {
    const v1::Chunk chunk = some_chunk(random);
    ASSERT_TRUE(note(chunk));
    all.mutable_groups()->MergeFrom(chunk.groups());
    for (const v1::TokenGroup& group : chunk.groups()) {
      ids += static_cast<size_t>(group.token_ids_size());
    }
    if (i % 500 == 0) {
      ASSERT_EQ(told_by(tokens_->record()).SerializeAsString(), all.SerializeAsString()) << i;
    }
  }
  EXPECT_EQ(told_by(tokens_->record()).SerializeAsString(), all.SerializeAsString());
  EXPECT_EQ(tokens_->tokens(), ids);
}

TEST_F(DeliveredTokensTest, TakesThreeBytesForATokenAndOneForItsGroup) {
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(note_one(151'643));
  EXPECT_EQ(tokens_->record().size(), 4'000U);
  EXPECT_LE(budget_.held(), 8'192U);
}

TEST_F(DeliveredTokensTest, TakesNothingOfTheBudgetUntilThereIsSomething) {
  ASSERT_TRUE(note({}));
  EXPECT_EQ(budget_.held(), 0U);
  EXPECT_TRUE(tokens_->record().empty());
  EXPECT_EQ(tokens_->tokens(), 0U);
}

TEST_F(DeliveredTokensTest, GivesBackAllThatItHeld) {
  ASSERT_TRUE(note_one(7));
  ASSERT_TRUE(tokens_->keep(std::make_shared<std::string>(100'000, 'x')));
  EXPECT_GE(budget_.held(), 100'000U);
  tokens_.reset();
  EXPECT_EQ(budget_.held(), 0U);
}

TEST_F(DeliveredTokensTest, HoldsNoMoreOfOneStreamThanItsBound) {
  size_t noted = 0;
  while (note_one(151'643)) ++noted;
  EXPECT_EQ(noted, DeliveredTokens::kMostBytes / 4 - 1) << "what it is made of has to fit";
  EXPECT_LE(budget_.held(), DeliveredTokens::kMostBytes);
}

TEST_F(DeliveredTokensTest, HoldsNoGroupsOfACallThatLacksSome) {
  v1::Chunk chunk;
  v1::TokenGroup& group = *chunk.add_groups();
  for (size_t i = 0; i <= DeliveredTokens::kMostBytes; ++i) group.add_token_ids(1);
  EXPECT_FALSE(note(chunk));
}

TEST_F(DeliveredTokensTest, FindsNoRoomWhereOthersHaveTheBudget) {
  runtime::BodyShare others(budget_);
  ASSERT_TRUE(note_one(7));
  ASSERT_TRUE(others.grow_to(budget_.total() - budget_.held()));
  int noted = 0;
  while (note_one(7)) ++noted;
  EXPECT_LT(noted, 256) << "until its room is used up";
  others.shrink_to(0);
  EXPECT_TRUE(note_one(7));
}

TEST_F(DeliveredTokensTest, LeavesHalfOfTheBudgetToTokens) {
  const auto large = std::make_shared<std::string>(budget_.total() / 2 + 1, 'x');
  EXPECT_FALSE(tokens_->keep(large));
  EXPECT_EQ(tokens_->body(), nullptr);
  large->pop_back();
  EXPECT_TRUE(tokens_->keep(large));
  EXPECT_EQ(tokens_->body(), large);
  DeliveredTokens other(budget_);
  EXPECT_FALSE(other.keep(std::make_shared<std::string>("x")));
  EXPECT_TRUE(note_one(7));
}

}  // namespace
}  // namespace penstock::proxy
