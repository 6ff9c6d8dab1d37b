// What protobuf reads in a frame, as FrameReader has to tell it: whatever its way, the same.
#pragma once

#include <string>
#include <string_view>

#include "penstock/v1/inference.pb.h"
#include "upstream/frame_reader.h"

namespace penstock::upstream::test {

// The frame that a reader has told of, put together again.
inline v1::ServerFrame told_by(const FrameReader& reader) {
  v1::ServerFrame frame;
  for (const FrameReader::Event& event : reader.events()) {
    v1::CallEvent& told = *frame.add_events();
    if (event.other != nullptr) {
      told = *event.other;
      continue;
    }
    told.set_call_id(event.call_id);
    told.mutable_chunk()->set_body(std::string(event.chunk.body));
    told.mutable_chunk()->set_events(event.chunk.events);
    told.mutable_chunk()->set_tokens(event.chunk.tokens);
  }
  if (reader.load() != nullptr) *frame.mutable_load() = *reader.load();
  return frame;
}

// Of what nobody knows the gateway keeps nothing.
inline std::string text_of(v1::ServerFrame frame) {
  frame.DiscardUnknownFields();
  return frame.SerializeAsString();
}

// Whether the reader tells of `message` what protobuf does, and no event under another's id.
inline bool reads_as_protobuf(FrameReader& reader, std::string_view message) {
  v1::ServerFrame expected;
  const bool good = expected.ParseFromArray(message.data(), static_cast<int>(message.size()));
  if (reader.read(message) != good) return false;
  if (!good) return reader.events().empty() && reader.load() == nullptr;
  for (const FrameReader::Event& event : reader.events()) {
    if (event.other != nullptr && event.other->call_id() != event.call_id) return false;
  }
  return text_of(told_by(reader)) == text_of(expected);
}

}  // namespace penstock::upstream::test
