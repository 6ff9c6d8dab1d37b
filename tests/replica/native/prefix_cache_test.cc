#include "simulated/prefix_cache.h"

#include <gmock/gmock.h>

#include <numeric>
#include <vector>

namespace penstock::replica::simulated {
namespace {

std::vector<uint32_t> ids(size_t count, uint32_t first = 0) {
  std::vector<uint32_t> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

TEST(BlockHashes, AreOfWholeBlocksAndFollowFromAllBefore) {
  const auto two = block_hashes(ids(2 * kBlockTokens + 5), {});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(block_hashes(ids(kBlockTokens), {}).front(), two.front());
  auto changed = ids(2 * kBlockTokens);
  changed[0] = 7;
  EXPECT_NE(block_hashes(changed, {}).back(), two.back());
}

TEST(BlockHashes, DifferWithAdapterDigestAndSalt) {
  const auto plain = block_hashes(ids(kBlockTokens), {});
  EXPECT_NE(block_hashes(ids(kBlockTokens), {.adapter = "a@1"}), plain);
  EXPECT_NE(block_hashes(ids(kBlockTokens), {.adapter_digest = "d"}), plain);
  EXPECT_NE(block_hashes(ids(kBlockTokens), {.tenant_salt = "s"}), plain);
}

TEST(PrefixCache, MatchesFromTheFirstBlockOnWithoutAGap) {
  PrefixCache cache(10);
  cache.add(std::vector<uint64_t>{1, 2, 4});
  EXPECT_EQ(cache.matched(std::vector<uint64_t>{1, 2, 3, 4}), 2u);
  EXPECT_EQ(cache.matched(std::vector<uint64_t>{9, 1}), 0u);
  cache.clear();
  EXPECT_EQ(cache.matched(std::vector<uint64_t>{1}), 0u);
}

TEST(PrefixCache, LosesWhatWasNotUsedForLongest) {
  PrefixCache cache(2);
  cache.add(std::vector<uint64_t>{1, 2});
  EXPECT_EQ(cache.matched(std::vector<uint64_t>{1}), 1u);
  cache.add(std::vector<uint64_t>{3});
  EXPECT_EQ(cache.matched(std::vector<uint64_t>{1}), 1u);
  EXPECT_EQ(cache.matched(std::vector<uint64_t>{2}), 0u);
}

}  // namespace
}  // namespace penstock::replica::simulated
