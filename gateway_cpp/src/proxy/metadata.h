// What a stream tells of its own making where its client asked for it: one more chunk before
// [DONE], without choices, with an object that no other client sees.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "openai/chunk_names.h"

namespace penstock::proxy {

struct StreamFacts {
  std::string_view trace_id;
  std::string_view backend;  // deployment
  std::string_view replica;
  std::string_view backend_version;  // model and adapter, with their versions
  std::string_view model_version;
  std::string_view adapter_version;
  std::string_view degraded;           // why it is not what was asked for; empty: it is
  std::uint32_t trimmed_messages = 0;  // left out of the prompt
  std::uint32_t trimmed_tokens = 0;
  std::chrono::nanoseconds queue{0};
  std::chrono::milliseconds estimated_wait{0};
  std::chrono::nanoseconds ttft{0};
  std::chrono::nanoseconds total{0};
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
  unsigned attempts = 0;
  unsigned resumes = 0;
};

// As one server-sent event.
std::string metadata_event(const openai::ChunkNames& names, const StreamFacts& facts);

}  // namespace penstock::proxy
