// To where the longest known part of the prompt's prefix was computed, as long as that replica is
// not loaded far above the others; then to the next on the ring from where the first block belongs,
// so that what many prompts share is computed on as few replicas as its load needs. There a prefix
// that nobody knows begins, too: all gateways agree on it. Without a prefix: power_of_two.
#pragma once

#include <unordered_map>

#include "routing/hash_ring.h"
#include "routing/policy.h"
#include "routing/power_of_two_policy.h"
#include "routing/prefix_table.h"

namespace penstock::routing {

class PrefixAwarePolicy final : public Policy {
 public:
  Replica* choose(const Candidates& candidates) override;
  std::string_view name() const override { return "prefix_aware"; }
  void follow(std::span<const std::shared_ptr<Replica>> replicas) override;

 private:
  using Prefix = std::span<const std::uint64_t>;

  // Where that block was computed; null: nowhere that is still in the set.
  Replica* owner(std::uint64_t block);
  static bool is_good(const Replica& owner, const Candidates& candidates);
  // How many blocks from the first on are known. O(log blocks).
  std::size_t known(Prefix prefix);
  void note(Prefix prefix, std::size_t known, const Replica& chosen);

  HashRing ring_;
  PrefixTable table_;
  std::unordered_map<std::uint32_t, Replica*> by_serial_;
  PowerOfTwoPolicy power_of_two_;
};

}  // namespace penstock::routing
