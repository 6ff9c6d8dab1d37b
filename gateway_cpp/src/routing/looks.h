// Which replicas one choice looks at, each once: the first few of them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "routing/pick.h"

namespace penstock::routing {

class Replica;

class Looks {
 public:
  std::string_view by;  // what chose among them: static

  void add(const Replica& replica) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (seen_[i] == &replica) return;
    }
    if (count_ < Pick::kMost) seen_[count_++] = &replica;
  }
  const Replica* const* begin() const { return seen_.data(); }
  const Replica* const* end() const { return seen_.data() + count_; }
  std::size_t size() const { return count_; }

 private:
  std::size_t count_ = 0;
  std::array<const Replica*, Pick::kMost> seen_;  // the first count_
};

}  // namespace penstock::routing
