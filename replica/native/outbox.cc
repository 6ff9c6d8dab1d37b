#include "outbox.h"

#include <algorithm>
#include <utility>

namespace penstock::replica {

void Outbox::Filled::clear() {
  room.clear();
  ended.clear();
  largest_body = 0;
}

bool Outbox::add(const CallPtr& call) {
  std::lock_guard lock(mutex_);
  return calls_.emplace(call->id, call).second;
}

CallPtr Outbox::find(uint64_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second;
}

CallPtr Outbox::remove(uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(id);
  if (found == calls_.end()) return nullptr;
  CallPtr call = std::move(found->second);
  calls_.erase(found);
  return call;
}

std::vector<CallPtr> Outbox::remove_all() {
  std::lock_guard lock(mutex_);
  std::vector<CallPtr> calls;
  calls.reserve(calls_.size());
  for (auto& [id, call] : calls_) calls.push_back(std::move(call));
  calls_.clear();
  ready_.clear();
  return calls;
}

bool Outbox::empty() const {
  std::lock_guard lock(mutex_);
  return calls_.empty();
}

bool Outbox::ready(const CallPtr& call) {
  std::lock_guard lock(mutex_);
  ready_.push_back(call);
  return ready_.size() == 1;
}

bool Outbox::fill(v1::ServerFrame* frame, Filled* filled) {
  std::lock_guard lock(mutex_);
  spare_.swap(ready_);
  size_t bytes = 0;
  size_t next = 0;
  std::vector<CallPtr> again;
  for (; next < spare_.size() && bytes < kFrameBytes; ++next) {
    const CallPtr& call = spare_[next];
    v1::CallEvent* event = frame->add_events();
    const TokenQueue::Taken taken = call->answer.take(event, kFrameBytes - bytes);
    if (!taken.anything) {
      frame->mutable_events()->RemoveLast();
      continue;
    }
    event->set_call_id(call->id);
    bytes += taken.bytes + kEventOverheadBytes;
    filled->largest_body = std::max(filled->largest_body, taken.bytes);
    if (taken.room) filled->room.push_back(call);
    if (taken.more) again.push_back(call);
    if (taken.ended && calls_.erase(call->id) > 0) filled->ended.push_back(call);
  }
  ready_.insert(ready_.end(), spare_.begin() + static_cast<std::ptrdiff_t>(next), spare_.end());
  ready_.insert(ready_.end(), again.begin(), again.end());
  spare_.clear();
  return frame->events_size() > 0;
}

}  // namespace penstock::replica
