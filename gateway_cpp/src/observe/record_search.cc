// What is looked for among the records that are kept, and who follows those that come.
#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "observe/record_filter.h"
#include "observe/record_store.h"
#include "observe/record_tail.h"

namespace penstock::observe {

namespace {

constexpr std::size_t kLookedAtOnce = 128;
constexpr std::size_t kMostFound = 100;
constexpr unsigned kMostYields = 1000;  // those that settle do so for ever
// They lie as they ended, but for those of threads that settled at the same time.
constexpr std::uint64_t kOutOfOrderUs = 1'000'000;

struct Found {
  std::uint64_t received_us = 0;
  std::string bytes;
  std::string id = {};
  bool operator>(const Found& other) const {
    return std::tie(received_us, id) > std::tie(other.received_us, other.id);
  }
};

// The newest that are asked for, as far as is known: all gateways put them into one order.
class Newest {
 public:
  explicit Newest(const v1::RequestFilter& filter) : filter_(filter), most_(limit_of(filter)) {}

  bool may_have(const RecordFacts& facts) const {
    return may_match(filter_, facts) &&
           (heap_.size() < most_ || facts.received_us >= heap_.front().received_us);
  }
  // Whether neither one that ended then can be one of them, nor any that ended before.
  bool has_all_since(std::uint64_t ended_us) const {
    const std::uint64_t oldest = heap_.size() < most_ ? 0 : heap_.front().received_us;
    return ended_us + kOutOfOrderUs < std::max(oldest, filter_.since_us());
  }
  void add(Found found) {
    if (!record_.ParseFromString(found.bytes) || !matches(filter_, record_)) return;
    found.id = record_.request_id();
    heap_.push_back(std::move(found));
    std::ranges::push_heap(heap_, std::greater<>());
    if (heap_.size() <= most_) return;
    std::ranges::pop_heap(heap_, std::greater<>());
    heap_.pop_back();
  }
  std::vector<std::string> take() {
    std::ranges::sort(heap_, std::greater<>());
    std::vector<std::string> bytes;
    bytes.reserve(heap_.size());
    for (Found& found : heap_) bytes.push_back(std::move(found.bytes));
    return bytes;
  }

 private:
  const v1::RequestFilter& filter_;
  const std::size_t most_;
  v1::RequestRecord record_;
  std::vector<Found> heap_;  // the oldest first
};

}  // namespace

// They lie as they ended: one that came late may have ended early.
std::vector<std::string> RecordStore::list(const v1::RequestFilter& filter) const {
  Newest newest(filter);
  std::vector<Found> looked_at;
  look_through(
      [&](const Kept& kept) {
        if (newest.may_have(kept.facts())) {
          looked_at.push_back(
              {.received_us = kept.received_us, .bytes = std::string(kept.bytes())});
        }
        return !newest.has_all_since(kept.ended_us());
      },
      [&] {
        for (Found& found : looked_at) newest.add(std::move(found));
        looked_at.clear();
      });
  return newest.take();
}

// Clients may call theirs as we call another's: that one is told, however many they are.
std::vector<std::string> RecordStore::find(std::string_view id) const {
  const RecordName name(id);
  std::vector<std::string> found;
  look_through(
      [&](const Kept& kept) {
        const NamedBy by = name.named_by(kept.bytes());
        if (by == NamedBy::kUs) {
          found.emplace(found.begin(), kept.bytes());
        } else if (by == NamedBy::kClient && found.size() < kMostFound) {
          found.emplace_back(kept.bytes());
        }
        return true;
      },
      [] {});
  return found;
}

const RecordStore::Kept* RecordStore::older(const Kept& kept) const {
  const auto at = all_.iterator_to(kept);
  return at == all_.begin() ? nullptr : &*std::prev(at);
}

void RecordStore::look_through(const Look& look, const std::function<void()>& looked) const {
  Cursor cursor;
  let_takers_in();
  {
    const std::lock_guard lock(mutex_);
    if (all_.empty()) return;
    cursor.next = &all_.back();
    cursors_.push_back(&cursor);
  }
  for (bool more = true; more;) {
    more = look_at_some(cursor, look);
    looked();
    let_takers_in();
  }
  const std::lock_guard lock(mutex_);
  std::erase(cursors_, &cursor);
}

void RecordStore::let_takers_in() const {
  for (unsigned i = 0; i < kMostYields && takers_.load(std::memory_order_relaxed) > 0; ++i) {
    std::this_thread::yield();
  }
}

bool RecordStore::look_at_some(Cursor& cursor, const Look& look) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < kLookedAtOnce && cursor.next != nullptr; ++i) {
    const Kept& kept = *cursor.next;
    cursor.next = older(kept);
    if (!look(kept)) return false;
  }
  return cursor.next != nullptr;
}

std::shared_ptr<RecordTail> RecordStore::tail(v1::RequestFilter filter,
                                              std::function<void()> wake) {
  auto tail = std::make_shared<RecordTail>(std::move(filter), std::move(wake));
  const std::lock_guard lock(mutex_);
  tails_.push_back(tail);
  return tail;
}

// Those that nobody holds any more are forgotten.
void RecordStore::offer(const RecordFacts& facts, std::string_view bytes) {
  std::erase_if(tails_, [&](const std::weak_ptr<RecordTail>& one) {
    const auto tail = one.lock();
    if (tail) tail->offer(facts, bytes);
    return !tail;
  });
}

}  // namespace penstock::observe
