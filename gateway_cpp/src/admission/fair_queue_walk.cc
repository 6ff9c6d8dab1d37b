#include <tuple>

#include "admission/fair_queue.h"

namespace penstock::admission {

FairQueue::ByPriority FairQueue::before(const QueueEntry& entry) const {
  Walk walk(*this);
  ByPriority before{};
  for (const QueueEntry* one = walk.next(); one != nullptr; one = walk.next()) {
    if (one == &entry) return before;
    ++before[static_cast<std::size_t>(one->priority)];
  }
  before = waiting();
  --before[static_cast<std::size_t>(entry.priority)];
  return before;
}

FairQueue::ByPriority FairQueue::waiting() const {
  static_assert(kClasses == 3);
  return {classes_[0].count, classes_[1].count, classes_[2].count};
}

FairQueue::Walk::Walk(const FairQueue& queue) : queue_(queue), turn_(queue.turns_) {
  const auto low = static_cast<std::size_t>(base::Priority::kLow);
  const auto normal = static_cast<std::size_t>(base::Priority::kNormal);
  const auto high = static_cast<std::size_t>(base::Priority::kHigh);
  order_ = queue.low_is_due() ? std::array{low, high, normal} : std::array{high, normal, low};
}

QueueEntry* FairQueue::Walk::next() {
  for (;;) {
    if (class_ == nullptr) {
      if (classes_ == order_.size()) return nullptr;
      open(queue_.classes_[order_[classes_++]]);
    }
    QueueEntry* entry = next_in_class();
    if (entry != nullptr) return entry;
    class_ = nullptr;
  }
}

void FairQueue::Walk::open(const Class& in) {
  class_ = &in;
  unopened_ = in.waiting.begin();
  open_ = 0;
  looks_ = 0;
}

// The cursor whose line has the next turn; a line that no cursor stands on yet gets one when it is
// its turn. Null: none is left.
FairQueue::Walk::Cursor* FairQueue::Walk::first() {
  Cursor* best = nullptr;
  for (std::size_t i = 0; i < open_; ++i) {
    Cursor& cursor = cursors_[i];
    if (best == nullptr ||
        std::tie(cursor.counter, cursor.turn) < std::tie(best->counter, best->turn)) {
      best = &cursor;
    }
  }
  if (unopened_ == class_->waiting.end()) return best;
  const Line& line = *unopened_;
  if (best != nullptr && std::tie(best->counter, best->turn) < std::tie(line.counter, line.turn)) {
    return best;
  }
  ++unopened_;
  cursors_[open_] = {line.entries.begin(), line.entries.end(), line.counter, line.turn, 0};
  return &cursors_[open_++];
}

QueueEntry* FairQueue::Walk::next_in_class() {
  if (looks_ == kLooks) return nullptr;
  Cursor* cursor = first();
  if (cursor == nullptr) return nullptr;
  ++looks_;
  const QueueEntry& entry = *cursor->at;
  ++cursor->at;
  ++cursor->looks;
  cursor->counter += entry.work;
  cursor->turn = ++turn_;
  if (cursor->at == cursor->end || cursor->looks == kLooksOfOne) *cursor = cursors_[--open_];
  return const_cast<QueueEntry*>(&entry);  // its owner's, not the queue's
}

}  // namespace penstock::admission
