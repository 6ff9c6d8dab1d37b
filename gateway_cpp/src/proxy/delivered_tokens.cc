#include "proxy/delivered_tokens.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace penstock::proxy {

bool DeliveredTokens::keep(upstream::SharedBody body) {
  if (budget_.held() + body->size() > budget_.total() / 2) return false;
  if (!room_.grow_to(room_.bytes() + body->size())) return false;
  body_ = std::move(body);
  return true;
}

// A record is no longer than the groups that it is made of.
bool DeliveredTokens::grow(size_t more) {
  constexpr size_t kLeast = 256;
  const size_t used = size();
  if (more > kMostBytes - used) return false;
  const auto before = static_cast<size_t>(end_ - record_.get());
  const size_t room = std::bit_ceil(std::max(used + more, kLeast));
  if (!room_.grow_to(room_.bytes() + room - before)) return false;
  auto record = std::make_unique_for_overwrite<char[]>(room);
  if (used > 0) std::memcpy(record.get(), record_.get(), used);
  record_ = std::move(record);
  at_ = record_.get() + used;
  end_ = record_.get() + room;
  return true;
}

size_t DeliveredTokens::tokens() const {
  size_t sum = 0;
  upstream::each_recorded(record(), [&sum](const upstream::TokenGroup& group) {
    const auto ends = [](char byte) { return static_cast<unsigned char>(byte) <= 0x7fU; };
    sum += static_cast<size_t>(std::ranges::count_if(group.ids, ends));
  });
  return sum;
}

}  // namespace penstock::proxy
