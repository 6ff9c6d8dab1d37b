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
  if (found == cancelled_.end()) return;
  Held& held = found->second.held;
  const v1::CallEvent* parsed = event.rest->parsed;
  if (parsed != nullptr && parsed->has_cancelled()) {
    held.settle(usage_of(parsed->cancelled().usage()), Held::Ended::kCutShort);
  } else if (event.rest->finished) {
    held.settle(event.rest->finished->usage.value_or(Usage()), Held::Ended::kWhole);
  } else if (parsed != nullptr && parsed->has_failed()) {
    held.settle(usage_of(parsed->failed().usage()), Held::Ended::kCutShort);
  } else {
    return;
  }
  cancelled_.erase(found);
}

void SessionCalls::deliver(const CallEvent& event) {
  const auto found = calls_.find(event.call_id);
  if (found == calls_.end()) {
    if (event.rest != nullptr) settle_cancelled(event);
    return;
  }
  Call& call = *found->second;
  if (!call.deliver(event)) return;
  if (call.ended()) calls_.erase(found);
  list(call);
}

void SessionCalls::list(Call& call) {
  if (std::exchange(call.listed, true)) return;
  to_wake_.push_back(&call);
}

}  // namespace penstock::upstream
