#include "routing/prefix_aware_policy.h"

#include <algorithm>

namespace penstock::routing {
namespace {

// Blocks of one prompt that are looked at: what follows them is hardly ever shared.
constexpr std::size_t kDeepest = 256;
// Blocks that are remembered for each replica, and for all of a set.
constexpr std::size_t kBlocksEach = 8192;
constexpr std::size_t kBlocksInAll = std::size_t{1} << 19U;

}  // namespace

Replica* PrefixAwarePolicy::choose(const Candidates& candidates) {
  Prefix prefix = candidates.traits().prefix;
  if (prefix.empty()) return power_of_two_.choose(candidates);
  prefix = prefix.first(std::min(prefix.size(), kDeepest));
  const std::size_t depth = known(prefix);
  Replica* chosen = depth > 0 ? owner(prefix[depth - 1]) : nullptr;
  if (chosen != nullptr && !is_good(*chosen, candidates)) chosen = nullptr;
  if (chosen == nullptr) chosen = sticky_to(prefix[0], ring_, candidates);
  if (chosen == nullptr) chosen = power_of_two_.choose(candidates);
  if (chosen != nullptr) note(prefix, depth, *chosen);
  return chosen;
}

// Whose blocks they are, unless it has too much to do or gave the adapter up, and others have it.
bool PrefixAwarePolicy::is_good(const Replica& owner, const Candidates& candidates) {
  if (!candidates.allows(owner) || !candidates.is_within(owner, kStickyFactor)) return false;
  const std::string_view adapter = candidates.traits().adapter;
  return adapter.empty() || owner.holds(adapter) ||
         candidates.preferences().holders(adapter).empty();
}

void PrefixAwarePolicy::follow(std::span<const std::shared_ptr<Replica>> replicas) {
  ring_.follow(replicas);
  by_serial_.clear();
  for (const auto& replica : replicas) by_serial_[replica->serial()] = replica.get();
  table_.set_capacity(std::clamp(replicas.size() * kBlocksEach, kBlocksEach, kBlocksInAll));
}

Replica* PrefixAwarePolicy::owner(std::uint64_t block) {
  const std::uint32_t serial = table_.find(block);
  if (serial == 0) return nullptr;
  const auto replica = by_serial_.find(serial);
  return replica == by_serial_.end() ? nullptr : replica->second;
}

// Each hash stands for all blocks before it: what is known is known from the first block on.
std::size_t PrefixAwarePolicy::known(Prefix prefix) {
  const auto end =
      std::ranges::partition_point(prefix, [this](auto block) { return owner(block) != nullptr; });
  return static_cast<std::size_t>(end - prefix.begin());
}

// Known blocks stay where they were computed first, and young; the others are computed now.
void PrefixAwarePolicy::note(Prefix prefix, std::size_t known, const Replica& chosen) {
  for (const std::uint64_t block : prefix.first(known)) table_.find(block);
  for (const std::uint64_t block : prefix.subspan(known)) table_.put(block, chosen.serial());
}

}  // namespace penstock::routing
