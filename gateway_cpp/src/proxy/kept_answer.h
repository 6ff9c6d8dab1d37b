// An answer's bytes, kept for a comparison: the first of them, as far as the budget for that has
// room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/body_budget.h"

namespace penstock::proxy {

class KeptAnswer {
 public:
  static constexpr size_t kMostBytes = 1UL << 20U;

  explicit KeptAnswer(runtime::BodyBudget& budget) : share_(budget) {}

  void keep(std::string_view more) {
    const size_t size = bytes_.size() + more.size();
    if (cut_ || size > kMostBytes || (size > share_.bytes() && !find_room(size))) {
      cut_ = true;
      return;
    }
    bytes_.append(more);
  }
  // Another one answers.
  void begin_again() {
    bytes_.clear();
    cut_ = false;
  }
  bool empty() const { return bytes_.empty(); }
  // Some of it is missing.
  bool cut() const { return cut_; }
  std::string take() { return std::move(bytes_); }

 private:
  bool find_room(size_t size) {
    constexpr size_t kStep = 4096;
    return share_.grow_to(std::max(size, kStep)) && share_.grow_to(size);
  }

  std::string bytes_;
  bool cut_ = false;
  runtime::BodyShare share_;
};

}  // namespace penstock::proxy
