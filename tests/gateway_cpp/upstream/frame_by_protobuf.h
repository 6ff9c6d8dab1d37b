// What protobuf reads in a frame, as FrameReader has to tell it: whatever its way, the same.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <string>
#include <string_view>

#include "penstock/v1/inference.pb.h"
#include "upstream/frame_reader.h"
#include "upstream/group_record.h"

namespace penstock::upstream::by_protobuf {

inline v1::Head told_by(const Head& head) {
  v1::Head told;
  told.set_status(head.status);
  told.set_content_type(head.content_type);
  told.set_prompt_tokens(head.prompt_tokens);
  told.set_cached_tokens(head.cached_tokens);
  told.set_model_version(head.model_version);
  told.set_model(head.model);
  told.set_trimmed_messages(head.trimmed_messages);
  told.set_trimmed_tokens(head.trimmed_tokens);
  told.set_kv_moved_tokens(head.kv_moved_tokens);
  told.set_resumable(head.resumable);
  told.set_created(static_cast<int64_t>(head.created));
  return told;
}

inline v1::Finished told_by(const Finished& outcome) {
  v1::Finished told;
  if (outcome.usage) {
    told.mutable_usage()->set_prompt_tokens(outcome.usage->prompt_tokens);
    told.mutable_usage()->set_completion_tokens(outcome.usage->completion_tokens);
    told.mutable_usage()->set_cached_tokens(outcome.usage->cached_tokens);
    told.mutable_usage()->set_cost_nanousd(outcome.usage->cost_nanousd);
  }
  told.mutable_timings()->set_queue_us(outcome.queue_us);
  told.mutable_timings()->set_prefill_us(outcome.prefill_us);
  told.mutable_timings()->set_decode_us(outcome.decode_us);
  for (const std::string& reason : outcome.finish_reasons) told.add_finish_reasons(reason);
  told.set_adapter(outcome.adapter);
  return told;
}

inline void put_ids(std::string_view ids, v1::TokenGroup& told) {
  google::protobuf::io::CodedInputStream read(reinterpret_cast<const uint8_t*>(ids.data()),
                                              static_cast<int>(ids.size()));
  for (uint32_t id = 0; read.ReadVarint32(&id);) told.add_token_ids(id);
}

inline void put(const TokenGroup& group, v1::TokenGroup& told) {
  told.set_choice(group.choice);
  put_ids(group.ids, told);
  told.set_finish_reason(std::string(group.finish_reason));
  told.set_stop_reason(std::string(group.stop_reason));
}

// A chunk that has the groups and nothing else, by way of the record that is made of them.
inline v1::Chunk groups_of(const TokenGroupsView& groups) {
  std::string record(groups.bytes.size(), '\0');
  record.resize(static_cast<size_t>(record_groups(groups, record.data()) - record.data()));
  v1::Chunk told;
  each_recorded(record, [&](const TokenGroup& group) { put(group, *told.add_groups()); });
  v1::Chunk as_they_lie;
  groups.each([&](const TokenGroup& group) { put(group, *as_they_lie.add_groups()); });
  if (told.SerializeAsString() == as_they_lie.SerializeAsString()) return told;
  told.add_groups()->set_stop_reason("the record is another");
  return told;
}

// The frame that a reader has told of, put together again.
inline v1::ServerFrame told_by(const FrameReader& reader) {
  v1::ServerFrame frame;
  for (const CallEvent& event : reader.events()) {
    v1::CallEvent& told = *frame.add_events();
    const CallEvent::Rest* rest = event.rest;
    if (rest != nullptr && rest->parsed != nullptr) told = *rest->parsed;
    told.set_call_id(event.call_id);
    *told.mutable_chunk() = groups_of(event.chunk.groups);
    told.mutable_chunk()->set_body(std::string(event.chunk.body));
    told.mutable_chunk()->set_events(event.chunk.events);
    told.mutable_chunk()->set_tokens(event.chunk.tokens);
    told.clear_head();
    told.clear_finished();
    if (rest != nullptr && rest->head) *told.mutable_head() = told_by(*rest->head);
    if (rest != nullptr && rest->finished) *told.mutable_finished() = told_by(*rest->finished);
  }
  if (reader.load() != nullptr) *frame.mutable_load() = *reader.load();
  return frame;
}

// Of what nobody knows, and what it does not want to know, the gateway keeps nothing, and a chunk
// or timings that say nothing are none.
inline std::string text_of(v1::ServerFrame frame) {
  frame.DiscardUnknownFields();
  for (v1::CallEvent& event : *frame.mutable_events()) {
    event.mutable_chunk();
    if (event.has_head()) {
      event.mutable_head()->clear_queue_wait_us();
      event.mutable_head()->clear_backend_version();
    }
    if (!event.has_finished()) continue;
    const v1::Finished whole = event.finished();
    v1::Finished& wanted = *event.mutable_finished();
    wanted.Clear();
    if (whole.has_usage()) *wanted.mutable_usage() = whole.usage();
    *wanted.mutable_timings() = whole.timings();
    wanted.mutable_timings()->clear_decode_us();
    *wanted.mutable_finish_reasons() = whole.finish_reasons();
    wanted.set_adapter(whole.adapter());
  }
  return frame.SerializeAsString();
}

// Whether the reader tells of `message` what protobuf does, and no event under another's id.
inline bool reads_as_protobuf(FrameReader& reader, std::string_view message) {
  v1::ServerFrame expected;
  const bool good = expected.ParseFromArray(message.data(), static_cast<int>(message.size()));
  if (reader.read(message) != good) return false;
  if (!good) return reader.events().empty() && reader.load() == nullptr;
  return text_of(told_by(reader)) == text_of(expected);
}

}  // namespace penstock::upstream::by_protobuf
