#include "simulated/request.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "errors.h"
#include "simulated/conversation.h"
#include "simulated/reading.h"
#include "simulated/words.h"

namespace penstock::replica::simulated {
namespace {

// A parser keeps the memory that its largest document took; beyond this, it is given back.
constexpr size_t kKeepParserBytes = 1 << 20;

// How long the answer may be, and the field that says so.
struct Limit {
  const char* name;
  uint64_t tokens;  // 0: not named
};

Limit read_limit(dom::object body) {
  const char* const name =
      field(body, "max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  return {name, read_count(body, name, 1, UINT32_MAX).value_or(0)};
}

// Where the call may be trimmed, the oldest turns of a chat go that has more tokens than it may.
void trim(dom::object body, const v1::CallRequest& request, uint64_t max_model_len,
          const Limit& limit, Prompt* prompt, Ask* ask) {
  if (!request.trim() || ask->endpoint != Endpoint::kChat) return;
  const uint64_t asked = std::max<uint64_t>(limit.tokens, 1);
  uint64_t most = max_model_len > asked ? max_model_len - asked : 0;
  if (request.max_prompt_tokens() > 0) most = std::min<uint64_t>(most, request.max_prompt_tokens());
  if (prompt->tokens() <= most) return;
  auto shorter = shortened(body, most, prompt->by_ids());
  if (!shorter) return;
  ask->trimmed_messages = shorter->messages;
  ask->trimmed_tokens = prompt->tokens() - shorter->prompt.tokens();
  *prompt = std::move(shorter->prompt);
}

void check_budget(const v1::CallRequest& request, const Ask& ask, const Limit& limit) {
  const uint32_t most_prompt = request.max_prompt_tokens();
  if (most_prompt > 0 && ask.prompt_tokens > most_prompt) {
    refuse("token_budget_exceeded", ask.endpoint == Endpoint::kChat ? "messages" : "prompt",
           "The prompt has " + std::to_string(ask.prompt_tokens) + " tokens, at most " +
               std::to_string(most_prompt) + " are allowed here; shorten it.");
  }
  const uint32_t most = request.max_completion_tokens();
  if (most > 0 && limit.tokens > most) {
    refuse("token_budget_exceeded", limit.name,
           "'" + std::string(limit.name) + "' is " + std::to_string(limit.tokens) + ", at most " +
               std::to_string(most) + " tokens are allowed here; ask for fewer.");
  }
}

void check_context(const Ask& ask, const Limit& limit, uint32_t max_model_len) {
  if (ask.prompt_tokens + std::max<uint64_t>(limit.tokens, 1) <= max_model_len) return;
  refuse("context_length_exceeded", limit.tokens > 1 ? limit.name : "messages",
         "This model's maximum context length is " + std::to_string(max_model_len) +
             " tokens. The prompt has " + std::to_string(ask.prompt_tokens) + " and " +
             std::to_string(limit.tokens) + " are asked for; shorten one of them.");
}

void read_stops(dom::object body, Ask* ask) {
  const auto stop = field(body, "stop");
  if (!stop) return;
  if (const auto text = as<std::string_view>(*stop)) {
    ask->stops.emplace_back(*text);
    return;
  }
  const auto items = as<dom::array>(*stop);
  if (!items) refuse_type("stop", "a string or an array of strings", *stop);
  for (const dom::element item : *items) ask->stops.emplace_back(read_text(item, "stop"));
}

void read_stream(dom::object body, Ask* ask) {
  ask->stream = read_bool(body, "stream");
  const auto options = field(body, "stream_options");
  if (!options) return;
  const auto fields = as<dom::object>(*options);
  if (!fields) refuse_type("stream_options", "an object", *options);
  if (!ask->stream) {
    refuse("invalid_value", "stream_options", "'stream_options' needs 'stream': true.");
  }
  ask->include_usage = read_bool(*fields, "include_usage");
}

void read_rate(dom::element value, double* rate) {
  const auto number = as<double>(value);
  if (!number || *number < 0 || *number > 1e6) {
    refuse_type("simulate.tokens_per_second", "a number from 0 to 1000000", value);
  }
  *rate = *number;
}

void read_simulate(dom::object body, bool allowed, uint32_t max_model_len, Behaviour* behaviour) {
  const auto value = field(body, "simulate");
  if (!value) return;
  if (!allowed) {
    refuse("unsupported_parameter", "simulate",
           "'simulate' is only read where the deployment's engine has per_request=1.");
  }
  const auto simulate = as<dom::object>(*value);
  if (!simulate) refuse_type("simulate", "an object", *value);
  for (const auto [key, setting] : *simulate) {
    const std::string name(key);
    const auto count = [&](uint64_t least, uint64_t most) {
      return read_count(*simulate, name, least, most).value_or(least);
    };
    if (name == "ttft_ms") {
      behaviour->ttft_ms = static_cast<uint32_t>(count(0, 3'600'000));
    } else if (name == "tokens_per_second") {
      read_rate(setting, &behaviour->tokens_per_second);
    } else if (name == "answer_tokens") {
      behaviour->answer_tokens = static_cast<uint32_t>(count(1, max_model_len));
    } else if (name == "die_after_tokens") {
      behaviour->die_after_tokens = count(0, UINT32_MAX);
    } else if (name == "hang_after_tokens") {
      behaviour->hang_after_tokens = count(0, UINT32_MAX);
    } else {
      refuse("unsupported_parameter", "simulate." + name,
             "'simulate' knows ttft_ms, tokens_per_second, answer_tokens, die_after_tokens and "
             "hang_after_tokens, not '" +
                 name + "'.");
    }
  }
}

Endpoint endpoint_of(const v1::CallRequest& request) {
  if (request.method() != "POST") {
    throw BadRequest{
        client_error(405, "method_not_allowed", "",
                     "Use POST for " + request.path() + ", not " + request.method() + ".")};
  }
  if (request.path() == "/v1/chat/completions") return Endpoint::kChat;
  if (request.path() == "/v1/completions") return Endpoint::kCompletion;
  v1::ErrorDetail error =
      client_error(400, "unsupported_endpoint", "model",
                   "The simulated engine serves /v1/chat/completions and /v1/completions, not " +
                       request.path() + ".");
  // Another replica of the deployment may have a model that does.
  error.set_retry(v1::RETRY_BEFORE_FIRST_TOKEN);
  throw BadRequest{std::move(error)};
}

void read_body(dom::object body, const Settings& settings, const v1::CallRequest& request,
               Ask* ask) {
  const bool by_ids = settings.microserving;
  Prompt prompt =
      ask->endpoint == Endpoint::kChat ? read_messages(body, by_ids) : read_prompt(body, by_ids);
  if (const auto model = field(body, "model")) ask->model = read_text(*model, "model");
  if (read_count(body, "n", 1, 128).value_or(1) > 1) {
    refuse("unsupported_parameter", "n", "The simulated engine gives one choice: 'n' must be 1.");
  }
  read_stream(body, ask);
  const Limit limit = read_limit(body);
  trim(body, request, settings.max_model_len, limit, &prompt, ask);
  ask->seed = mix(prompt.hash(), request.adapter());
  if (!request.adapter().empty()) ask->seed = mix(ask->seed, request.adapter_digest());
  ask->prompt_tokens = prompt.tokens();
  check_budget(request, *ask, limit);
  check_context(*ask, limit, settings.max_model_len);
  ask->max_tokens = static_cast<uint32_t>(limit.tokens);
  ask->most_tokens = request.max_completion_tokens();
  ask->prompt_ids = prompt.take_ids();
  ask->return_token_ids = read_bool(body, "return_token_ids");
  read_stops(body, ask);
  read_simulate(body, settings.per_request, settings.max_model_len, &ask->behaviour);
}

dom::parser& parser_of_this_thread() {
  thread_local dom::parser parser;
  if (parser.capacity() > kKeepParserBytes) parser = dom::parser();
  return parser;
}

}  // namespace

std::variant<Ask, v1::ErrorDetail> read_request(v1::CallRequest* request,
                                                const Settings& settings) {
  try {
    Ask ask;
    ask.endpoint = endpoint_of(*request);
    ask.behaviour = settings.behaviour;
    std::string* const body = request->mutable_body();
    body->reserve(body->size() + simdjson::SIMDJSON_PADDING);
    dom::element document;
    const auto error =
        parser_of_this_thread().parse(body->data(), body->size(), false).get(document);
    if (error != simdjson::SUCCESS) {
      refuse("invalid_json", "",
             std::string("The body is not valid JSON: ") + simdjson::error_message(error));
    }
    const auto fields = as<dom::object>(document);
    if (!fields) refuse("invalid_json", "", "The body must be a JSON object.");
    read_body(*fields, settings, *request, &ask);
    return ask;
  } catch (BadRequest& bad) {
    return std::move(bad.error);
  }
}

bool is_refused(const std::string& request_id, double share) {
  return static_cast<double>(mix(0, request_id)) < share * std::pow(2.0, 64);
}

}  // namespace penstock::replica::simulated
