#include "proxy/lookout.h"

#include <utility>

#include "routing/hashing.h"

namespace penstock::proxy {

namespace {

// What requests are looked at in one tick, in bytes that are hashed: some milliseconds. Looking at
// one costs as much as hashing kLook besides.
constexpr size_t kLooksPerTick = 1024UL * 1024;
constexpr size_t kLook = 1024;

}  // namespace

void Openings::tell(const admission::Suspects& suspects) {
  const uint64_t findings = suspects.findings();
  if (findings != findings_) to_look_at_.splice(to_look_at_.end(), all_);
  findings_ = findings;
  // Whoever is woken may end, and others with it.
  for (size_t work = 0; work < kLooksPerTick && !to_look_at_.empty();) {
    Opening& opening = to_look_at_.front();
    to_look_at_.pop_front();
    all_.push_back(opening);
    work += kLook + opening.bytes;
    opening.look_again = true;
    opening.news->raise();
  }
}

void KeyedRequests::tell(const std::shared_ptr<const routing::Routes>& routes) {
  if (routes == looked_at_) return;
  looked_at_ = routes;
  Lookouts<Keyed> to_end;
  for (auto at = all_.begin(); at != all_.end();) {
    Keyed& key = *at++;
    if (key.ended || !looked_at_->is_ended(key.id)) continue;
    key.ended = true;
    key.unlink();
    to_end.push_back(key);
  }
  // Whoever is woken may end, and others with it.
  while (!to_end.empty()) {
    Keyed& key = to_end.front();
    to_end.pop_front();
    all_.push_back(key);
    key.news->raise();
  }
}

void RunningStreams::tell(const dispatch::Dispatchers::ByUid& dispatchers) {
  uint64_t words = 0;
  for (const auto& [uid, dispatcher] : dispatchers) {
    words = routing::hash_both(words, dispatcher->words());
  }
  if (std::exchange(words_, words) == words) return;
  Lookouts<Running> to_tell;
  for (auto at = all_.begin(); at != all_.end();) {
    Running& running = *at++;
    const routing::Word word = running.replica->word();
    if (std::exchange(running.word, word) == word) continue;
    running.unlink();
    to_tell.push_back(running);
  }
  // Whoever is woken may end, and others with it.
  while (!to_tell.empty()) {
    Running& running = to_tell.front();
    to_tell.pop_front();
    all_.push_back(running);
    running.news->rouse();
  }
}

}  // namespace penstock::proxy
