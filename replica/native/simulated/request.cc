#include "simulated/request.h"

#include <simdjson.h>

#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "errors.h"
#include "simulated/words.h"

namespace penstock::replica::simulated {
namespace {

namespace dom = simdjson::dom;

// A parser keeps the memory that its largest document took; beyond this, it is given back.
constexpr size_t kKeepParserBytes = 1 << 20;

// Thrown while reading and caught in `read_request`: a body is wrong at one of twenty places.
struct BadRequest {
  v1::ErrorDetail error;
};

[[noreturn]] void refuse(std::string_view code, const std::string& param,
                         const std::string& message) {
  throw BadRequest{client_error(400, code, param, message)};
}

[[noreturn]] void refuse_type(const std::string& param, const std::string& expected,
                              dom::element found) {
  std::string value = simdjson::minify(found);
  if (value.size() > 60) value = value.substr(0, 60) + "...";
  refuse("invalid_type", param, "'" + param + "' must be " + expected + ", not " + value + ".");
}

// The element as a T; none if it is something else.
template <class T>
std::optional<T> as(dom::element element) {
  T value{};
  if (element.get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

// Of a key that stands twice the last counts, as for the gateway and for Python's parser.
std::optional<dom::element> field(dom::object object, std::string_view name) {
  std::optional<dom::element> found;
  for (const auto& [key, value] : object) {
    if (key == name) found = value;
  }
  return found && !found->is_null() ? found : std::nullopt;
}

bool read_bool(dom::object object, const std::string& name) {
  const auto value = field(object, name);
  if (!value) return false;
  const auto truth = as<bool>(*value);
  if (!truth) refuse_type(name, "a boolean", *value);
  return *truth;
}

std::optional<uint64_t> read_count(dom::object object, const std::string& name, uint64_t least,
                                   uint64_t most) {
  const auto value = field(object, name);
  if (!value) return std::nullopt;
  if (as<int64_t>(*value).value_or(0) < 0) {
    refuse("invalid_value", name, "'" + name + "' must be at least " + std::to_string(least) + ".");
  }
  const auto count = as<uint64_t>(*value);
  if (!count) refuse_type(name, "an integer", *value);
  if (*count < least || *count > most) {
    refuse("invalid_value", name,
           "'" + name + "' must be between " + std::to_string(least) + " and " +
               std::to_string(most) + ", not " + std::to_string(*count) + ".");
  }
  return count;
}

std::string_view read_text(dom::element value, const std::string& name) {
  const auto text = as<std::string_view>(value);
  if (!text) refuse_type(name, "a string", value);
  return *text;
}

// What the answer follows from, and what the prompt costs: a token for each word.
class Prompt {
 public:
  void add(std::string_view text) {
    hash_ = mix(hash_, text);
    bool in_word = false;
    for (const char c : text) {
      const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
      tokens_ += (!blank && !in_word) ? 1 : 0;
      in_word = !blank;
    }
  }
  void add_token(uint64_t id) {
    hash_ = mix(hash_, {reinterpret_cast<const char*>(&id), sizeof id});
    ++tokens_;
  }
  uint64_t hash() const { return hash_; }
  uint32_t tokens() const { return tokens_; }

 private:
  uint64_t hash_ = 0;
  uint32_t tokens_ = 0;
};

void read_part(dom::element part, const std::string& name, Prompt* prompt) {
  const auto fields = as<dom::object>(part);
  if (!fields) refuse_type(name, "an object", part);
  const auto text = field(*fields, "text");
  if (text) prompt->add(read_text(*text, name + ".text"));
}

void read_content(dom::element content, const std::string& name, Prompt* prompt) {
  if (const auto text = as<std::string_view>(content)) return prompt->add(*text);
  const auto parts = as<dom::array>(content);
  if (!parts) refuse_type(name, "a string or an array of parts", content);
  for (const dom::element part : *parts) read_part(part, name, prompt);
}

void read_message(dom::element element, size_t index, Prompt* prompt) {
  const std::string name = "messages." + std::to_string(index);
  const auto message = as<dom::object>(element);
  if (!message) refuse_type(name, "an object", element);
  const auto role = field(*message, "role");
  if (!role) {
    refuse("missing_required_parameter", name + ".role", "Field required: '" + name + ".role'.");
  }
  prompt->add(read_text(*role, name + ".role"));
  if (const auto content = field(*message, "content")) {
    read_content(*content, name + ".content", prompt);
  }
}

void read_messages(dom::object body, Prompt* prompt) {
  const auto messages = field(body, "messages");
  if (!messages) {
    refuse("missing_required_parameter", "messages", "Field required: 'messages'.");
  }
  const auto items = as<dom::array>(*messages);
  if (!items) refuse_type("messages", "an array", *messages);
  size_t index = 0;
  for (const dom::element message : *items) {
    read_message(message, index++, prompt);
  }
  if (index == 0) refuse("invalid_value", "messages", "'messages' must have at least one message.");
}

void read_prompt(dom::object body, Prompt* prompt) {
  const auto value = field(body, "prompt");
  if (!value) refuse("missing_required_parameter", "prompt", "Field required: 'prompt'.");
  if (const auto text = as<std::string_view>(*value)) return prompt->add(*text);
  const auto items = as<dom::array>(*value);
  if (!items) refuse_type("prompt", "a string or an array of token ids", *value);
  for (const dom::element item : *items) {
    const auto text = as<std::string_view>(item);
    if (text && items->size() == 1) return prompt->add(*text);
    const auto id = as<uint64_t>(item);
    if (!id) refuse_type("prompt", "one string or one array of token ids", item);
    prompt->add_token(*id);
  }
}

void check_budget(const v1::CallRequest& request, const Ask& ask, const std::string& name,
                  uint64_t limit) {
  const uint32_t most_prompt = request.max_prompt_tokens();
  if (most_prompt > 0 && ask.prompt_tokens > most_prompt) {
    refuse("token_budget_exceeded", ask.endpoint == Endpoint::kChat ? "messages" : "prompt",
           "The prompt has " + std::to_string(ask.prompt_tokens) + " tokens, at most " +
               std::to_string(most_prompt) + " are allowed here; shorten it.");
  }
  const uint32_t most = request.max_completion_tokens();
  if (most > 0 && limit > most) {
    refuse("token_budget_exceeded", name,
           "'" + name + "' is " + std::to_string(limit) + ", at most " + std::to_string(most) +
               " tokens are allowed here; ask for fewer.");
  }
}

void read_limit(dom::object body, const v1::CallRequest& request, uint32_t max_model_len,
                Ask* ask) {
  const char* const name =
      field(body, "max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  const uint64_t limit = read_count(body, name, 1, UINT32_MAX).value_or(0);
  check_budget(request, *ask, name, limit);
  if (ask->prompt_tokens + std::max<uint64_t>(limit, 1) > max_model_len) {
    refuse("context_length_exceeded", limit > 1 ? name : "messages",
           "This model's maximum context length is " + std::to_string(max_model_len) +
               " tokens. The prompt has " + std::to_string(ask->prompt_tokens) + " and " +
               std::to_string(limit) + " are asked for; shorten one of them.");
  }
  ask->max_tokens = static_cast<uint32_t>(limit);
  ask->most_tokens = request.max_completion_tokens();
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
  Prompt prompt;
  if (ask->endpoint == Endpoint::kChat) {
    read_messages(body, &prompt);
  } else {
    read_prompt(body, &prompt);
  }
  ask->seed = mix(prompt.hash(), request.adapter());
  if (!request.adapter().empty()) ask->seed = mix(ask->seed, request.adapter_digest());
  ask->prompt_tokens = prompt.tokens();
  if (const auto model = field(body, "model")) ask->model = read_text(*model, "model");
  if (read_count(body, "n", 1, 128).value_or(1) > 1) {
    refuse("unsupported_parameter", "n", "The simulated engine gives one choice: 'n' must be 1.");
  }
  read_stream(body, ask);
  read_limit(body, request, settings.max_model_len, ask);
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
