#include "routing/prefix_table.h"

#include <utility>

#include "routing/hashing.h"

namespace penstock::routing {
namespace {

constexpr std::size_t kFirstEntries = 256;

}  // namespace

PrefixTable::Entry* PrefixTable::Generation::slot(std::uint64_t block) {
  if (entries.empty()) return nullptr;
  const std::size_t mask = entries.size() - 1;
  std::size_t at = mix(block) & mask;
  while (entries[at].serial != 0 && entries[at].block != block) at = (at + 1) & mask;
  return &entries[at];
}

void PrefixTable::Generation::put(std::uint64_t block, std::uint32_t serial) {
  if (2 * (count + 1) > entries.size()) {
    std::vector<Entry> before = std::exchange(entries, {});
    entries.resize(before.empty() ? kFirstEntries : 2 * before.size());
    for (const Entry& entry : before) {
      if (entry.serial != 0) *slot(entry.block) = entry;
    }
  }
  Entry& entry = *slot(block);
  if (entry.serial == 0) ++count;
  entry = {block, serial};
}

std::uint32_t PrefixTable::find(std::uint64_t block) {
  const Entry* young = young_.slot(block);
  if (young != nullptr && young->serial != 0) return young->serial;
  const Entry* old = old_.slot(block);
  const std::uint32_t serial = old != nullptr ? old->serial : 0;
  if (serial != 0) put(block, serial);
  return serial;
}

void PrefixTable::put(std::uint64_t block, std::uint32_t serial) {
  if (young_.count >= capacity_) old_ = std::exchange(young_, {});
  young_.put(block, serial);
}

}  // namespace penstock::routing
