#include "openai/by_body.h"

#include "openai/json_walk.h"

namespace penstock::openai {

namespace ondemand = simdjson::ondemand;

namespace {

// Which of these the body has, with another value than null.
struct Prompts {
  bool messages = false;
  bool prompt = false;
};

simdjson::error_code look_for_prompts(ondemand::document& document, Prompts& found) {
  ondemand::object object;
  if (const auto error = document.get_object().get(object)) return error;
  for (auto entry : object) {
    ondemand::field field;
    if (const auto error = std::move(entry).get(field)) return error;
    std::string_view key;
    if (const auto error = unescaped_key(field).get(key)) return error;
    bool* const prompt = key == "messages" ? &found.messages
                         : key == "prompt" ? &found.prompt
                                           : nullptr;
    if (prompt == nullptr) continue;
    ondemand::json_type type{};
    if (const auto error = field.value().type().get(type)) return error;
    *prompt = type != ondemand::json_type::null;
  }
  return simdjson::SUCCESS;
}

base::MaybeError unclear(const Prompts& prompts) {
  if (prompts.messages != prompts.prompt) return std::nullopt;
  const std::string which = "with 'messages' the body is a chat, with 'prompt' a completion";
  if (!prompts.messages) {
    return base::make_error(base::Kind::kMissingParameter,
                            "'messages' or 'prompt' is missing: " + which, "messages");
  }
  return base::make_error(
      base::Kind::kInvalidValue,
      "the body has both 'messages' and 'prompt': " + which + "; leave one of them out", "prompt");
}

}  // namespace

simdjson::error_code choose_by_body(ondemand::document& document, const Endpoint*& endpoint,
                                    base::MaybeError& no) {
  Prompts prompts;
  if (const auto error = look_for_prompts(document, prompts)) return error;
  no = unclear(prompts);
  endpoint = find_endpoint(prompts.messages ? "/v1/chat/completions" : "/v1/completions");
  document.rewind();
  return simdjson::SUCCESS;
}

}  // namespace penstock::openai
