#include "routing/replica_heap.h"

namespace penstock::routing {

void ReplicaHeap::put(Replica& replica, double key) {
  std::size_t at = replica.note.heap_at;
  if (at == SIZE_MAX) {
    at = entries_.size();
    entries_.push_back({});
  }
  sift(at, {key, replica.note.chosen, &replica});
}

void ReplicaHeap::remove(Replica& replica) {
  const std::size_t at = replica.note.heap_at;
  if (at == SIZE_MAX) return;
  replica.note.heap_at = SIZE_MAX;
  const Entry last = entries_.back();
  entries_.pop_back();
  if (at < entries_.size()) sift(at, last);
}

Replica* ReplicaHeap::least(const Candidates& candidates) const {
  const std::size_t at = least_below(0, candidates);
  return at == SIZE_MAX ? nullptr : entries_[at].replica;
}

std::size_t ReplicaHeap::least_below(std::size_t at, const Candidates& candidates) const {
  if (at >= entries_.size()) return SIZE_MAX;
  if (candidates.allows(*entries_[at].replica)) return at;
  const std::size_t left = least_below(2 * at + 1, candidates);
  const std::size_t right = least_below(2 * at + 2, candidates);
  if (left == SIZE_MAX || right == SIZE_MAX) return left == SIZE_MAX ? right : left;
  return entries_[right] < entries_[left] ? right : left;
}

void ReplicaHeap::place(std::size_t at, const Entry& entry) {
  entries_[at] = entry;
  entry.replica->note.heap_at = at;
}

void ReplicaHeap::sift(std::size_t at, Entry entry) {
  while (at > 0 && entry < entries_[(at - 1) / 2]) {
    place(at, entries_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= entries_.size()) break;
    if (child + 1 < entries_.size() && entries_[child + 1] < entries_[child]) ++child;
    if (!(entries_[child] < entry)) break;
    place(at, entries_[child]);
    at = child;
  }
  place(at, entry);
}

}  // namespace penstock::routing
