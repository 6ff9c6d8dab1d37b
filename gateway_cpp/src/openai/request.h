// What the gateway reads of a request body: one pass of simdjson, which also proves that the body
// is JSON. The body itself travels on byte for byte and is never written anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/config.h"
#include "base/error.h"
#include "openai/endpoints.h"

namespace penstock::openai {

// Whether the client gets server-sent events or one JSON object.
enum class AnswerForm : std::uint8_t { kUnary, kStream };

inline constexpr std::size_t kLongestPromptVersion = 64;  // bytes

// A value. Views into the body are not kept.
struct Request {
  // What it is for, which the body may say: static, never null once it was read.
  const Endpoint* endpoint = nullptr;
  // As the client wrote it: "deployment" or "deployment:alias"; empty: it named none.
  std::string model;
  AnswerForm form = AnswerForm::kUnary;
  std::optional<std::uint64_t> max_tokens;  // of the endpoint's limits
  std::uint64_t choices = 1;                // "n", where the endpoint has it
  std::uint64_t prompts = 1;                // each of which is answered with so many choices
  std::string user;                         // the caller's own name for its user; empty: none
  std::string session;                      // "session_id", where it is a text
  std::string prompt_version;               // metadata.prompt_version, cut; empty: none
  bool include_usage = false;               // stream_options.include_usage
  bool has_tools = false;                   // the answer may call some

  std::uint64_t answers() const { return choices * prompts; }
};

// Owns simdjson's buffers, which stay large enough for bodies of a MiB. One for each I/O thread.
class RequestParser {
 public:
  RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;
  ~RequestParser();

  // `body` keeps its bytes; its capacity may grow by the padding that simdjson reads into. Of a key
  // that comes twice the last one counts, as in the engine's own parser.
  base::Result<Request> parse(const Endpoint& endpoint, std::string& body,
                              const base::BodyElements& most);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::openai
