#include "upstream/session_calls.h"

namespace penstock::upstream {

SessionCalls::~SessionCalls() { drop_cancelled(Held::Silence::kUnanswered); }

void SessionCalls::drop_cancelled(Held::Silence silence) {
  for (auto& [id, cancelled] : std::exchange(cancelled_, {})) cancelled.held.drop(silence);
}

bool SessionCalls::remove(Call& call) {
  if (call.listed) {
    for (Call*& listed : to_wake_) {
      if (listed == &call) listed = nullptr;
    }
  }
  if (calls_.erase(call.id()) == 0) return false;
  cancelled_.emplace(call.id(), Cancelled{call.take_held()});
  return true;
}

bool SessionCalls::take_in(std::string_view message) {
  if (!frame_.read(message)) return false;
  for (const CallEvent& event : frame_.events()) deliver(event);
  return true;
}

void SessionCalls::give_up_unanswered(unsigned rounds) {
  for (auto at = cancelled_.begin(); at != cancelled_.end();) {
    if (++at->second.rounds <= rounds) {
      ++at;
      continue;
    }
    at->second.held.drop(Held::Silence::kUnanswered);
    at = cancelled_.erase(at);
  }
}

// What came of it meanwhile is for nobody.
void SessionCalls::settle_cancelled(const CallEvent& event) {
  const auto found = cancelled_.find(event.call_id);
  if (found != cancelled_.end() && found->second.held.settle_by(event)) cancelled_.erase(found);
}

void SessionCalls::deliver(const CallEvent& event) {
  const auto found = calls_.find(event.call_id);
  if (found == calls_.end()) return settle_cancelled(event);
  Call& call = *found->second;
  const bool has_news = call.deliver(event);
  if (call.is_over()) calls_.erase(found);
  if (has_news) list(call);
}

void SessionCalls::list(Call& call) {
  if (std::exchange(call.listed, true)) return;
  to_wake_.push_back(&call);
}

}  // namespace penstock::upstream
