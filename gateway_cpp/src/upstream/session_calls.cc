#include "upstream/session_calls.h"

namespace penstock::upstream {

namespace {

constexpr int kReadsPerFrame = 256;

}  // namespace

bool SessionCalls::remove(Call& call) {
  if (call.listed) {
    for (Call*& listed : to_wake_) {
      if (listed == &call) listed = nullptr;
    }
  }
  return calls_.erase(call.id()) != 0;
}

bool SessionCalls::take_in(std::string_view message) {
  // Slots keep the memory of the largest event they held: not for ever.
  if (++reads_ % kReadsPerFrame == 0) incoming_ = v1::ServerFrame();
  if (!incoming_.ParseFromArray(message.data(), static_cast<int>(message.size()))) return false;
  deliver(incoming_);
  return true;
}

void SessionCalls::deliver(v1::ServerFrame& frame) {
  for (v1::CallEvent& event : *frame.mutable_events()) {
    const auto found = calls_.find(event.call_id());
    if (found == calls_.end()) continue;  // cancelled here while it was on its way
    Call& call = *found->second;
    call.deliver(event);
    if (call.ended()) calls_.erase(found);
    list(call);
  }
}

void SessionCalls::list(Call& call) {
  if (std::exchange(call.listed, true)) return;
  to_wake_.push_back(&call);
}

}  // namespace penstock::upstream
