// What the simulated engine reads from a request. Pure: bytes in, a value or an OpenAI error out.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "penstock/v1/inference.pb.h"
#include "simulated/settings.h"

namespace penstock::replica::simulated {

enum class Endpoint : uint8_t { kChat, kCompletion };

struct Ask {
  Endpoint endpoint = Endpoint::kChat;
  bool stream = false;
  bool include_usage = false;
  uint32_t max_tokens = 0;   // 0: not named
  uint32_t most_tokens = 0;  // where none is named; 0: what the engine gives
  uint64_t seed = 0;         // follows from prompt, adapter and its digest
  uint32_t prompt_tokens = 0;
  std::vector<uint32_t> prompt_ids;  // where `Settings::microserving`
  bool return_token_ids = false;
  uint32_t trimmed_messages = 0;  // that went, as the call allows
  uint32_t trimmed_tokens = 0;    // that the prompt has fewer for it
  std::string model;              // as the body says it
  std::vector<std::string> stops;
  Behaviour behaviour;
};

// Reads the request's body; leaves the request as it was, apart from the body's spare capacity.
std::variant<Ask, v1::ErrorDetail> read_request(v1::CallRequest* request, const Settings& settings);

// The deterministic coin that `refuse_share` tosses.
bool is_refused(const std::string& request_id, double share);

}  // namespace penstock::replica::simulated
