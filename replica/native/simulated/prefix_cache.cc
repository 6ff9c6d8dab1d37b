#include "simulated/prefix_cache.h"

#include "simulated/words.h"

namespace penstock::replica::simulated {

std::vector<uint64_t> block_hashes(std::span<const uint32_t> token_ids, const HashedWith& with) {
  uint64_t hash = mix(mix(mix(0, with.adapter), with.adapter_digest), with.tenant_salt);
  std::vector<uint64_t> hashes;
  hashes.reserve(token_ids.size() / kBlockTokens);
  for (size_t begin = 0; begin + kBlockTokens <= token_ids.size(); begin += kBlockTokens) {
    const auto bytes = std::as_bytes(token_ids.subspan(begin, kBlockTokens));
    hash = mix(hash, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    hashes.push_back(hash);
  }
  return hashes;
}

size_t PrefixCache::matched(std::span<const uint64_t> hashes) {
  size_t count = 0;
  while (count < hashes.size() && blocks_.contains(hashes[count])) use(hashes[count++]);
  return count;
}

void PrefixCache::add(std::span<const uint64_t> hashes) {
  for (const uint64_t hash : hashes) use(hash);
  while (blocks_.size() > capacity_) {
    blocks_.erase(order_.back());
    order_.pop_back();
  }
}

void PrefixCache::use(uint64_t hash) {
  const auto found = blocks_.find(hash);
  if (found == blocks_.end()) {
    order_.push_front(hash);
    blocks_.emplace(hash, order_.begin());
  } else {
    order_.splice(order_.begin(), order_, found->second);
  }
}

void PrefixCache::clear() {
  blocks_.clear();
  order_.clear();
}

}  // namespace penstock::replica::simulated
