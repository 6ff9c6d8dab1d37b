// A replica's frame, read where it lies: what nearly all frames are made of is neither copied nor
// allocated for. Everything else is protobuf's to read, and so is a frame with anything in it that
// is not quite as protobuf would write it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "penstock/v1/inference.pb.h"
#include "upstream/call_event.h"

namespace penstock::upstream {

class FrameReader {
 public:
  // False: `message` is no v1::ServerFrame, and there is nothing to look at.
  bool read(std::string_view message);

  // Of the frame that was read last, in its order; valid until the next, bodies of chunks as long
  // as the message.
  const std::vector<CallEvent>& events() const { return events_; }
  // Null: the frame tells none.
  const v1::Load* load() const { return parsed_.has_load() ? &parsed_.load() : nullptr; }

 private:
  void forget();
  bool read_in_place(std::string_view message);
  bool add_event(std::string_view bytes);
  bool add_load(std::string_view bytes);
  bool parse(std::string_view message);
  CallEvent::Rest& next_rest();

  std::vector<CallEvent> events_;
  std::vector<std::unique_ptr<CallEvent::Rest>> rests_;  // of events, kept for the next frame's
  size_t rests_used_ = 0;
  v1::ServerFrame parsed_;   // what protobuf has read of the frame
  bool has_parsed_ = false;  // it has read anything
  uint64_t reads_ = 0;
};

}  // namespace penstock::upstream
