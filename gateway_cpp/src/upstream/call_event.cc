#include "upstream/call_event.h"

namespace penstock::upstream {

namespace {

Head head_of(const v1::Head& told) {
  return {.status = told.status(),
          .prompt_tokens = told.prompt_tokens(),
          .cached_tokens = told.cached_tokens(),
          .trimmed_messages = told.trimmed_messages(),
          .trimmed_tokens = told.trimmed_tokens(),
          .kv_moved_tokens = told.kv_moved_tokens(),
          .resumable = told.resumable(),
          .created = static_cast<uint64_t>(told.created()),
          .content_type = told.content_type(),
          .model_version = told.model_version(),
          .model = told.model()};
}

Finished finished_of(const v1::Finished& told) {
  Finished outcome{.usage = {},
                   .queue_us = told.timings().queue_us(),
                   .prefill_us = told.timings().prefill_us(),
                   .decode_us = told.timings().decode_us(),
                   .finish_reasons = {told.finish_reasons().begin(), told.finish_reasons().end()},
                   .adapter = told.adapter()};
  if (told.has_usage()) outcome.usage = usage_of(told.usage());
  return outcome;
}

}  // namespace

Usage usage_of(const v1::Usage& told) {
  return {.prompt_tokens = told.prompt_tokens(),
          .completion_tokens = told.completion_tokens(),
          .cached_tokens = told.cached_tokens(),
          .cost_nanousd = told.cost_nanousd()};
}

CallEvent event_of(v1::CallEvent& parsed, CallEvent::Rest& rest) {
  const v1::Chunk& chunk = parsed.chunk();
  rest.parsed = &parsed;
  rest.head.reset();
  rest.finished.reset();
  rest.groups.clear();
  if (parsed.has_head()) rest.head = head_of(parsed.head());
  if (chunk.groups_size() > 0) append_groups(chunk, rest.groups);
  if (parsed.has_finished()) rest.finished = finished_of(parsed.finished());
  return {.call_id = parsed.call_id(),
          .chunk = {.body = chunk.body(),
                    .events = chunk.events(),
                    .tokens = chunk.tokens(),
                    .groups = {rest.groups}},
          .rest = &rest};
}

}  // namespace penstock::upstream
