#include "upstream/event_reader.h"

#include "upstream/token_groups.h"
#include "upstream/usual_event.h"
#include "upstream/wire_fields.h"

namespace penstock::upstream {

namespace {

bool read_head(std::string_view bytes, Head& head) {
  return read_fields(bytes, [&head](uint64_t tag, WireFields& fields) {
    switch (tag) {
      case number_field(v1::Head::kStatusFieldNumber):
        return fields.number(head.status);
      case bytes_field(v1::Head::kContentTypeFieldNumber):
        return fields.text_into(head.content_type);
      case number_field(v1::Head::kPromptTokensFieldNumber):
        return fields.number(head.prompt_tokens);
      case number_field(v1::Head::kCachedTokensFieldNumber):
        return fields.number(head.cached_tokens);
      case number_field(v1::Head::kQueueWaitUsFieldNumber):
        return fields.skip_number();
      case bytes_field(v1::Head::kBackendVersionFieldNumber):
        return fields.skip_text();
      case bytes_field(v1::Head::kModelVersionFieldNumber):
        return fields.text_into(head.model_version);
      case bytes_field(v1::Head::kModelFieldNumber):
        return fields.text_into(head.model);
      case number_field(v1::Head::kTrimmedMessagesFieldNumber):
        return fields.number(head.trimmed_messages);
      case number_field(v1::Head::kTrimmedTokensFieldNumber):
        return fields.number(head.trimmed_tokens);
      case number_field(v1::Head::kKvMovedTokensFieldNumber):
        return fields.number(head.kv_moved_tokens);
      case number_field(v1::Head::kResumableFieldNumber):
        return fields.number(head.resumable);
      case number_field(v1::Head::kCreatedFieldNumber):
        return fields.number(head.created);
      default:
        return false;
    }
  });
}

// Those of a chunk lie one behind the other, where protobuf has written it.
bool read_groups(WireFields& fields, TokenGroupsView& groups) {
  std::string_view& read = groups.bytes;
  const char* const from = fields.rest().data() - 1;  // the tag
  const char* const begin = read.empty() ? from : read.data();
  if (begin + read.size() != from) return false;
  TokenGroup group;
  std::string_view bytes;
  if (!fields.bytes(bytes) || !read_group(bytes, group)) return false;
  read = {begin, static_cast<size_t>(fields.rest().data() - begin)};
  return base::is_ascii(group.finish_reason) && base::is_ascii(group.stop_reason);
}

bool read_chunk(std::string_view bytes, ChunkView& chunk) {
  return read_fields(bytes, [&chunk](uint64_t tag, WireFields& fields) {
    switch (tag) {
      case bytes_field(v1::Chunk::kBodyFieldNumber):
        return fields.bytes(chunk.body);
      case number_field(v1::Chunk::kEventsFieldNumber):
        return fields.number(chunk.events);
      case bytes_field(v1::Chunk::kGroupsFieldNumber):
        return read_groups(fields, chunk.groups);
      case number_field(v1::Chunk::kTokensFieldNumber):
        return fields.number(chunk.tokens);
      default:
        return false;
    }
  });
}

bool read_usage(std::string_view bytes, Usage& usage) {
  return read_fields(bytes, [&usage](uint64_t tag, WireFields& fields) {
    switch (tag) {
      case number_field(v1::Usage::kPromptTokensFieldNumber):
        return fields.number(usage.prompt_tokens);
      case number_field(v1::Usage::kCompletionTokensFieldNumber):
        return fields.number(usage.completion_tokens);
      case number_field(v1::Usage::kCachedTokensFieldNumber):
        return fields.number(usage.cached_tokens);
      case number_field(v1::Usage::kCostNanousdFieldNumber):
        return fields.number(usage.cost_nanousd);
      default:
        return false;
    }
  });
}

bool read_timings(std::string_view bytes, Finished& outcome) {
  return read_fields(bytes, [&outcome](uint64_t tag, WireFields& fields) {
    switch (tag) {
      case number_field(v1::Timings::kQueueUsFieldNumber):
        return fields.number(outcome.queue_us);
      case number_field(v1::Timings::kPrefillUsFieldNumber):
        return fields.number(outcome.prefill_us);
      case number_field(v1::Timings::kDecodeUsFieldNumber):
        return fields.number(outcome.decode_us);
      default:
        return false;
    }
  });
}

// What comes twice is put together, as protobuf does.
bool read_usage_of(WireFields& fields, Finished& outcome) {
  std::string_view bytes;
  if (!outcome.usage) outcome.usage.emplace();
  return fields.bytes(bytes) && read_usage(bytes, *outcome.usage);
}

bool read_finished(std::string_view bytes, Finished& outcome) {
  return read_fields(bytes, [&outcome](uint64_t tag, WireFields& fields) {
    std::string_view inner;
    switch (tag) {
      case bytes_field(v1::Finished::kUsageFieldNumber):
        return read_usage_of(fields, outcome);
      case bytes_field(v1::Finished::kTimingsFieldNumber):
        return fields.bytes(inner) && read_timings(inner, outcome);
      case bytes_field(v1::Finished::kFinishReasonsFieldNumber):
        return fields.text_into(outcome.finish_reasons.emplace_back());
      case bytes_field(v1::Finished::kAdapterFieldNumber):
        return fields.text_into(outcome.adapter);
      case bytes_field(v1::Finished::kBackendFieldNumber):
      case bytes_field(v1::Finished::kBackendVersionFieldNumber):
      case bytes_field(v1::Finished::kModelVersionFieldNumber):
      case bytes_field(v1::Finished::kRequestIdFieldNumber):
      case bytes_field(v1::Finished::kTraceIdFieldNumber):
      case bytes_field(v1::Finished::kModelFieldNumber):
      case bytes_field(v1::Finished::kProviderRequestIdFieldNumber):
        return fields.skip_text();
      case number_field(v1::Finished::kTtftUsFieldNumber):
      case number_field(v1::Finished::kTotalUsFieldNumber):
        return fields.skip_number();
      default:
        return false;
    }
  });
}

template <class Part>
Part& part_of(std::optional<Part>& part) {
  return part ? *part : part.emplace();
}

}  // namespace

bool read_event(std::string_view bytes, CallEvent& event, CallEvent::Rest& rest) {
  event = {};
  if (read_usual(bytes, event)) return true;
  event = {};
  const auto rest_of = [&event, &rest]() -> CallEvent::Rest& {
    if (event.rest == nullptr) rest = {};
    event.rest = &rest;
    return rest;
  };
  return read_fields(bytes, [&](uint64_t tag, WireFields& fields) {
    std::string_view inner;
    switch (tag) {
      case number_field(v1::CallEvent::kCallIdFieldNumber):
        return fields.number(event.call_id);
      case bytes_field(v1::CallEvent::kChunkFieldNumber):
        return fields.bytes(inner) && read_chunk(inner, event.chunk);
      case bytes_field(v1::CallEvent::kHeadFieldNumber):
        return fields.bytes(inner) && read_head(inner, part_of(rest_of().head));
      case bytes_field(v1::CallEvent::kFinishedFieldNumber):
        return fields.bytes(inner) && read_finished(inner, part_of(rest_of().finished));
      default:
        return false;
    }
  });
}

}  // namespace penstock::upstream
