// A unary answer from its first byte until it is with its client: in the pieces in which it came,
// so that a large one is never moved or held twice. One that is larger than kFreeBytes holds a
// share of the budget for answers, and gives it back piece by piece as the client takes them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/body_budget.h"
#include "runtime/payload.h"

namespace penstock::proxy {

class HeldAnswer {
 public:
  static constexpr size_t kFreeBytes = 64UL * 1024;

  explicit HeldAnswer(runtime::BodyBudget& budget) : most_(budget.total()), share_(budget) {}

  // Bytes that are not let go of yet.
  size_t size() const { return size_; }
  size_t pieces() const { return pieces_.size() - sent_; }
  // Whether it is as good as nothing to copy.
  bool is_short() const { return pieces() <= 1 && size_ <= kFreeBytes; }
  // Whether others wait for what it holds.
  bool holds_share() const { return share_.bytes() > 0; }

  const runtime::BodyShare& share() const { return share_; }

  // Takes the piece and leaves it empty, before any is let go of. find_room() has to follow.
  void add(runtime::Payload& piece) {
    size_ += piece.size();
    if (!pieces_.empty() && pieces_.back().size() + piece.size() <= kFreeBytes) {
      held_ -= pieces_.back().capacity();
      pieces_.back().append(piece.bytes());
      piece.clear();
    } else {
      pieces_.emplace_back().swap(piece);
    }
    held_ += pieces_.back().capacity();
  }
  // False: the budget has no room for all of it now. One that is larger than the whole budget goes
  // when it has all of that: it could never be served otherwise, however often it is asked for.
  bool find_room() { return size_ <= kFreeBytes || share_.grow_to(std::min(held_, most_)); }

  // The first of what is left; empty: nothing is.
  std::string_view front() const {
    return pieces() == 0 ? std::string_view() : pieces_[sent_].bytes();
  }
  // The client's system has it.
  void drop_front() {
    size_ -= pieces_[sent_].size();
    held_ -= pieces_[sent_].capacity();
    runtime::Payload().swap(pieces_[sent_++]);  // an assignment would keep its memory
    share_.shrink_to(held_);
  }
  // Nobody will be sent what is left.
  void clear() {
    pieces_.clear();
    sent_ = 0;
    size_ = 0;
    held_ = 0;
    share_.shrink_to(0);
  }

 private:
  std::vector<runtime::Payload> pieces_;
  size_t sent_ = 0;  // of these
  size_t size_ = 0;
  size_t held_ = 0;    // memory of all pieces
  const size_t most_;  // that the budget may ever give
  runtime::BodyShare share_;
};

}  // namespace penstock::proxy
