#include "openai/endpoints.h"

#include <algorithm>

namespace penstock::openai {
namespace {

constexpr std::size_t kShownPath = 200;  // of a hostile path
constexpr std::string_view kResponses = "/v1/responses/";

constexpr std::array kTable = {
    Endpoint{.path = "/v1/chat/completions",
             .prompt = Prompt::kMessages,
             .prompt_field = "messages",
             .streams = true,
             .limits = {"max_completion_tokens", "max_tokens"},
             .choices = "n",
             .operation = "chat"},
    Endpoint{.path = "/v1/completions",
             .prompt = Prompt::kText,
             .prompt_field = "prompt",
             .streams = true,
             .limits = {"max_tokens"},
             .choices = "n",
             .operation = "text_completion"},
    Endpoint{.path = "/v1/responses",
             .dialect = Dialect::kResponses,
             .prompt = Prompt::kText,
             .prompt_field = "input",
             .streams = true,
             .limits = {"max_output_tokens"},
             .operation = "chat"},
    Endpoint{.path = "/v1/responses/input_tokens",
             .dialect = Dialect::kResponses,
             .operation = "count_tokens"},
    Endpoint{.path = "/v1/messages",
             .dialect = Dialect::kAnthropic,
             .prompt = Prompt::kMessages,
             .prompt_field = "messages",
             .streams = true,
             .limits = {"max_tokens"},
             .operation = "chat"},
    Endpoint{.path = "/v1/messages/count_tokens",
             .dialect = Dialect::kAnthropic,
             .operation = "count_tokens"},
    Endpoint{.path = "/v1/embeddings", .operation = "embeddings"},
    Endpoint{.path = "/v1/score", .aliases = {"/score"}, .operation = "score"},
    Endpoint{.path = "/v1/rerank", .aliases = {"/rerank", "/v2/rerank"}, .operation = "rerank"},
    Endpoint{.path = "/classify", .aliases = {"/v1/classify"}, .operation = "classify"},
    Endpoint{.path = "/pooling", .aliases = {"/v1/pooling"}, .operation = "pooling"},
    Endpoint{.path = "/tokenize", .aliases = {"/v1/tokenize"}, .operation = "tokenize"},
    Endpoint{.path = "/detokenize", .aliases = {"/v1/detokenize"}, .operation = "detokenize"},
    Endpoint{.path = "/invocations", .operation = "unknown", .by_body = true},
};

bool is_called(const Endpoint& endpoint, std::string_view path) {
  return endpoint.path == path || (!path.empty() && std::ranges::count(endpoint.aliases, path) > 0);
}

}  // namespace

std::span<const Endpoint> endpoints() { return kTable; }

const Endpoint* find_endpoint(std::string_view path) {
  const auto row =
      std::ranges::find_if(kTable, [path](const Endpoint& row) { return is_called(row, path); });
  return row == kTable.end() ? nullptr : &*row;
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, std::min(target.find('?'), target.find('#')));
}

const Endpoint* endpoint_at(std::string_view target) { return find_endpoint(path_of(target)); }

Dialect dialect_at(std::string_view path) {
  if (const Endpoint* endpoint = endpoint_at(path)) return endpoint->dialect;
  return path.starts_with("/v1/messages/") ? Dialect::kAnthropic : Dialect::kOpenAi;
}

std::string nothing_at(std::string_view method, std::string_view path) {
  std::string message = "There is nothing at " + std::string(method) + " ";
  message.append(path.substr(0, kShownPath)).append(". ");
  if (path.starts_with(kResponses)) {
    return message +
           "This gateway keeps no responses, whatever `store` says: take what POST /v1/responses "
           "answers, and send the whole conversation with each request.";
  }
  message += "Served are POST ";
  for (const Endpoint& endpoint : kTable) message.append(endpoint.path).append(", ");
  return message + "and GET /v1/models, /v1/models/{id}.";
}

}  // namespace penstock::openai
