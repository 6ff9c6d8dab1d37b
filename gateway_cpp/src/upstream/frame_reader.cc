#include "upstream/frame_reader.h"

#include <utility>

#include "upstream/event_reader.h"
#include "upstream/wire_fields.h"

namespace penstock::upstream {

namespace {

constexpr int kReadsPerFrame = 256;

template <class Message>
bool parse_into(Message& message, std::string_view bytes) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

bool FrameReader::read(std::string_view message) {
  // All keep the memory of the largest: not for ever.
  if (++reads_ % kReadsPerFrame == 0) {
    parsed_ = v1::ServerFrame();
    std::vector<CallEvent>().swap(events_);
    rests_.clear();
  }
  return read_in_place(message) || parse(message);
}

void FrameReader::forget() {
  events_.clear();
  rests_used_ = 0;
  if (std::exchange(has_parsed_, false)) parsed_.Clear();
}

bool FrameReader::read_in_place(std::string_view message) {
  forget();
  return read_fields(message, [this](uint64_t tag, WireFields& fields) {
    std::string_view bytes;
    if (!fields.bytes(bytes)) return false;
    if (tag == bytes_field(v1::ServerFrame::kEventsFieldNumber)) return add_event(bytes);
    return tag == bytes_field(v1::ServerFrame::kLoadFieldNumber) && add_load(bytes);
  });
}

CallEvent::Rest& FrameReader::next_rest() {
  if (rests_used_ == rests_.size()) rests_.push_back(std::make_unique<CallEvent::Rest>());
  return *rests_[rests_used_];
}

bool FrameReader::add_event(std::string_view bytes) {
  CallEvent::Rest& rest = next_rest();
  CallEvent& event = events_.emplace_back();
  if (!read_event(bytes, event, rest)) {
    has_parsed_ = true;
    v1::CallEvent& parsed = *parsed_.add_events();
    if (!parse_into(parsed, bytes)) return false;
    event = event_of(parsed, rest);
  }
  if (event.rest != nullptr) ++rests_used_;
  return true;
}

// Loads that come twice are one, which protobuf puts together.
bool FrameReader::add_load(std::string_view bytes) {
  has_parsed_ = true;
  return !parsed_.has_load() && parse_into(*parsed_.mutable_load(), bytes);
}

bool FrameReader::parse(std::string_view message) {
  forget();
  has_parsed_ = true;
  if (!parse_into(parsed_, message)) {
    forget();
    return false;
  }
  for (v1::CallEvent& event : *parsed_.mutable_events()) {
    events_.push_back(event_of(event, next_rest()));
    ++rests_used_;
  }
  return true;
}

}  // namespace penstock::upstream
