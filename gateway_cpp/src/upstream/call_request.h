// What a replica is asked: a v1::CallRequest, seen where its parts lie.
#pragma once

#include <cstdint>
#include <string_view>

#include "upstream/resume.h"

namespace penstock::upstream {

// As v1::KvHint.
struct KvHint {
  std::string_view seq_id{};
  uint32_t begin = 0;
  uint32_t moved_tokens = 0;
};

// As the fields of v1::CallRequest, which says what they mean; what is empty, 0 or false is not
// said. All texts but the body have to be UTF-8.
struct CallRequest {
  std::string_view request_id{};
  std::string_view traceparent{};
  std::string_view method{};
  std::string_view path{};
  std::string_view body{};  // empty where it goes behind the rest
  std::string_view model{};
  std::string_view adapter{};
  int32_t priority = 0;
  std::string_view tenant_salt{};
  bool token_groups = false;
  uint32_t max_prompt_tokens = 0;
  uint32_t max_completion_tokens = 0;
  std::string_view adapter_digest{};
  uint32_t adapter_wait_ms = 0;
  bool trim = false;
  std::string_view tenant{};
  uint64_t input_price = 0;
  uint64_t output_price = 0;
  uint64_t cached_price = 0;
  const KvHint* kv = nullptr;      // null: nothing was moved for it
  const Resume* resume = nullptr;  // null: it begins anew
};

}  // namespace penstock::upstream
