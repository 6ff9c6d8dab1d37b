// What a replica says of a call, as far as this gateway wants to know: the parts of a
// v1::CallEvent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/v1/inference.pb.h"
#include "upstream/token_groups.h"

namespace penstock::upstream {

// As v1::Usage.
struct Usage {
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;
  uint32_t cached_tokens = 0;
  uint64_t cost_nanousd = 0;

  bool operator==(const Usage&) const = default;
};

Usage usage_of(const v1::Usage& told);

// As v1::Head.
struct Head {
  uint32_t status = 0;
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;
  uint32_t trimmed_messages = 0;
  uint32_t trimmed_tokens = 0;
  uint32_t kv_moved_tokens = 0;
  bool resumable = false;
  uint64_t created = 0;  // seconds since 1970
  std::string content_type;
  std::string model_version;
  std::string model;
};

// As v1::Finished.
struct Finished {
  std::optional<Usage> usage;
  uint64_t queue_us = 0;    // of the engine
  uint64_t prefill_us = 0;  // likewise
  uint64_t decode_us = 0;   // likewise
  std::vector<std::string> finish_reasons;
  std::string adapter;
};

// As v1::Chunk, as it lies in what the replica sent.
struct ChunkView {
  std::string_view body;
  uint32_t events = 0;  // SSE events in the body
  uint32_t tokens = 0;  // generated since the chunk before
  TokenGroupsView groups{};
};

// Of nearly all events there is nothing but a chunk.
struct CallEvent {
  struct Rest {
    std::optional<Head> head;
    std::optional<Finished> finished;
    std::string groups;               // of the chunk, where they do not lie in what was sent
    v1::CallEvent* parsed = nullptr;  // what else there may be: failed, cancelled
  };

  uint64_t call_id = 0;
  ChunkView chunk;       // empty: none came
  Rest* rest = nullptr;  // null: there is none
};

// What protobuf has read, as long as that lives and stays as it is. `rest` is where the parts go.
CallEvent event_of(v1::CallEvent& parsed, CallEvent::Rest& rest);

}  // namespace penstock::upstream
