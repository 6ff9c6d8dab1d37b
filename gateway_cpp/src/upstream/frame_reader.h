// A replica's frame, read where it lies. Nearly all events are the next bytes of some answer: these
// are neither copied nor allocated for. Everything else is protobuf's to read, and so is a frame
// with anything in it that is not quite as protobuf would write it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "penstock/v1/inference.pb.h"
#include "upstream/chunk_view.h"

namespace penstock::upstream {

class FrameReader {
 public:
  struct Event {
    uint64_t call_id = 0;
    ChunkView chunk;
    v1::CallEvent* other = nullptr;  // not null: this is the event, and `chunk` means nothing
  };

  // False: `message` is no v1::ServerFrame, and there is nothing to look at.
  bool read(std::string_view message);

  // Of the frame that was read last, in its order; valid until the next, bodies of chunks as long
  // as the message.
  const std::vector<Event>& events() const { return events_; }
  // Null: the frame tells none.
  const v1::Load* load() const { return parsed_.has_load() ? &parsed_.load() : nullptr; }

 private:
  bool read_in_place(std::string_view message);
  bool add_event(std::string_view bytes);
  bool add_load(std::string_view bytes);
  bool parse(std::string_view message);

  std::vector<Event> events_;
  v1::ServerFrame parsed_;  // what protobuf has read of the frame
  uint64_t reads_ = 0;
};

}  // namespace penstock::upstream
