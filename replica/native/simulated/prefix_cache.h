// Which blocks of prompts an engine has KV of, as vLLM knows them: by hashes that chain.
// Guarded by the engine's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace penstock::replica::simulated {

// Tokens of a block of the KV cache.
inline constexpr uint64_t kBlockTokens = 16;

// What else goes into the hashes of a prompt's blocks.
struct HashedWith {
  std::string_view adapter = "";
  std::string_view adapter_digest = "";
  std::string_view tenant_salt = "";
};

// Of each whole block.
std::vector<uint64_t> block_hashes(std::span<const uint32_t> token_ids, const HashedWith& with);

// The blocks that were used last.
class PrefixCache {
 public:
  explicit PrefixCache(size_t capacity_blocks) : capacity_(capacity_blocks) {}

  // How many of them are there, from the first on without a gap; they count as used.
  size_t matched(std::span<const uint64_t> hashes);
  void add(std::span<const uint64_t> hashes);
  void clear();

 private:
  void use(uint64_t hash);

  const size_t capacity_;
  std::list<uint64_t> order_;  // the last used first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> blocks_;
};

}  // namespace penstock::replica::simulated
