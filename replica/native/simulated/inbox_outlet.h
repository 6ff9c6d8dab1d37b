// Where the events of this process's own calls go.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "call.h"
#include "inbox.h"

namespace penstock::replica::simulated {

// Carries an asked call's events to the inbox as they are made.
class InboxOutlet final : public Outlet {
 public:
  InboxOutlet(std::shared_ptr<Inbox> inbox, uint64_t key) : inbox_(std::move(inbox)), key_(key) {}

  bool ready(const CallPtr& call) override {
    TokenQueue::Taken taken;
    do {
      v1::CallEvent event;
      taken = call->answer.take(&event, TokenQueue::kCapacityBytes);
      if (taken.anything) inbox_->post(Inbox::Kind::kEvent, key_, event.SerializeAsString());
    } while (taken.more);
    return false;
  }
  void flush() override {}

 private:
  const std::shared_ptr<Inbox> inbox_;
  const uint64_t key_;
};

}  // namespace penstock::replica::simulated
