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
#include "penstock/v1/inference.pb.h"

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

// What Python wrote for one call: a chunk, or something rarer. The chunk's bytes stay Python's.
struct Written {
  uint64_t key = 0;
  std::string_view body;
  uint32_t events = 0;
  uint32_t tokens = 0;
  std::vector<v1::TokenGroup> groups;
  std::unique_ptr<v1::CallEvent> other;  // a head, or an end; then there is no chunk
};

// What Python is told of its calls after a batch.
struct Delivered {
  std::vector<uint64_t> full;  // write no more until their room is posted
  std::vector<uint64_t> gone;  // nobody will read more of these
};

// Hands a loop turn's writes to their calls, which are then flushed together.
Delivered write_many(Switchboard* switchboard, std::span<Written> batch);

}  // namespace penstock::replica
