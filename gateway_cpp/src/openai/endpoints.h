// The endpoints at which a deployment's model answers, as one table. The router, the parser, the
// error dialects and the ends of streams read it: a new endpoint is a row here and a test. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::openai {

// In which words a client is told of errors, and how its streams end.
enum class Dialect : std::uint8_t {
  kOpenAi,     // {"error":{...}}; a whole stream ends with [DONE]
  kResponses,  // errors alike; typed events, the last of them response.completed or its like
  kAnthropic,  // {"type":"error",...}; typed events, the last of them message_stop
};

// What the gateway insists on in the field that holds the prompt.
enum class Prompt : std::uint8_t {
  kUnread,    // nothing: the engine judges it
  kMessages,  // an array of at least one object
  kText,      // a string or an array
};

// One row.
struct Endpoint {
  std::string_view path;                      // its first name: replicas and logs know no other
  std::array<std::string_view, 2> aliases{};  // what clients may say as well
  Dialect dialect = Dialect::kOpenAi;
  Prompt prompt = Prompt::kUnread;
  std::string_view prompt_field{};           // where the gateway reads it
  bool streams = false;                      // takes "stream"
  std::array<std::string_view, 2> limits{};  // of the answer's tokens; the first that is set counts
  std::string_view choices{};                // how many answers are wanted
  std::string_view operation{};              // `gen_ai.operation.name` of the conventions
  bool by_body = false;                      // it stands for others, and the body says for which
};

std::span<const Endpoint> endpoints();

// By any of its names; null: there is none.
const Endpoint* find_endpoint(std::string_view path);

// Of a target with a query, or with what browsers keep for themselves.
std::string_view path_of(std::string_view target);

// At the path of a target with a query; null: there is none.
const Endpoint* endpoint_at(std::string_view target);

// The dialect of whoever asks for `path`, be there anything or not.
Dialect dialect_at(std::string_view path);

// Why there is nothing at a path, and what there is.
std::string nothing_at(std::string_view method, std::string_view path);

}  // namespace penstock::openai
