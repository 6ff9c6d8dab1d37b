// Hands calls to Python through the inbox, and takes Python's events back in batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "call.h"
#include "inbox.h"

namespace penstock::replica {

class Switchboard;

class PythonHandler final : public CallHandler {
 public:
  explicit PythonHandler(std::shared_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}

  void start(std::span<const CallPtr> calls) override;
  void cancel(const CallPtr& call) override;
  void room(std::span<const CallPtr> calls) override;

 private:
  const std::shared_ptr<Inbox> inbox_;
};

// One event of a call, serialised as a CallEvent. The bytes stay the caller's.
using WrittenEvent = std::pair<uint64_t, std::string_view>;

// Hands a loop turn's events to their calls, which are then flushed together. Events of unknown
// calls are dropped: their clients are gone. Returns the keys whose queue is full: no more events
// for these until their room is posted.
std::vector<uint64_t> write_many(Switchboard* switchboard, std::span<const WrittenEvent> events);

}  // namespace penstock::replica
