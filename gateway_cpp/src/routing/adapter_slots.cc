#include "routing/adapter_slots.h"

#include <span>

namespace penstock::routing {

void AdapterSlots::put(Replica& replica, std::uint32_t loaded, std::uint32_t slots) {
  remove(replica);
  if (slots == 0) return;
  const Entry entry{.rank = loaded < slots ? loaded : UINT32_MAX,
                    .place = replica.id_hash(),
                    .serial = replica.serial(),
                    .replica = &replica};
  entries_.insert(std::ranges::upper_bound(entries_, entry.key(), {}, &Entry::key), entry);
  known_.emplace(&replica, entry);
}

void AdapterSlots::remove(const Replica& replica) {
  const auto known = known_.find(&replica);
  if (known == known_.end()) return;
  entries_.erase(std::ranges::lower_bound(entries_, known->second.key(), {}, &Entry::key));
  known_.erase(known);
}

std::size_t AdapterSlots::end_of_group(std::size_t begin) const {
  const auto end = std::upper_bound(
      entries_.begin() + static_cast<std::ptrdiff_t>(begin), entries_.end(), entries_[begin].rank,
      [](std::uint32_t rank, const Entry& entry) { return rank < entry.rank; });
  return static_cast<std::size_t>(end - entries_.begin());
}

std::size_t AdapterSlots::place_in(std::size_t begin, std::size_t end, std::uint64_t key) const {
  const auto group = std::span(entries_).subspan(begin, end - begin);
  const auto place = std::ranges::lower_bound(group, key, {}, &Entry::place);
  return static_cast<std::size_t>(place - group.begin());
}

}  // namespace penstock::routing
