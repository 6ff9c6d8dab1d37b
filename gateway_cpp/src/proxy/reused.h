// A few values one after the other that keep their memory when they are forgotten, for the next
// that are put there: T::clear() makes one as good as new.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace penstock::proxy {

template <class T>
class Reused {
 public:
  T& add() {
    if (used_ == items_.size()) items_.emplace_back();
    T& item = items_[used_++];
    item.clear();
    return item;
  }
  // The same where there are `most` already: the one at `at` gives way.
  T& add_of(std::size_t most, std::size_t at) {
    if (used_ == most) {
      const auto first = items_.begin() + static_cast<std::ptrdiff_t>(at);
      std::rotate(first, first + 1, items_.begin() + static_cast<std::ptrdiff_t>(used_--));
    }
    return add();
  }
  void clear() { used_ = 0; }

  bool empty() const { return used_ == 0; }
  std::size_t size() const { return used_; }
  T& back() { return items_[used_ - 1]; }
  const T& back() const { return items_[used_ - 1]; }
  std::span<T> all() { return {items_.data(), used_}; }
  std::span<const T> all() const { return {items_.data(), used_}; }

 private:
  std::vector<T> items_;
  std::size_t used_ = 0;
};

}  // namespace penstock::proxy
