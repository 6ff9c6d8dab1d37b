// Which handler a method and a path name. Pure: no I/O, no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace penstock::http {

enum class Page : uint8_t {
  kChatCompletions,
  kCompletions,
  kModels,
  kModel,
  kLivez,
  kReadyz,
  kMetrics,
};

struct Found {
  Page page;
  std::string_view path;  // of the endpoint, static, as replicas know it
  std::string model_id;   // of kModel: decoded
};
struct Preflight {};  // a browser asks what it may do
struct WrongMethod {
  std::string_view allow;  // for the Allow header
};
struct NotFound {};

using Match = std::variant<Found, Preflight, WrongMethod, NotFound>;

// `target`: as in the request line, with or without scheme, host and query.
Match match(std::string_view method, std::string_view target);

// JSON, or what simple clients send when they mean JSON; multipart and the like are not.
bool may_be_json(std::string_view content_type);

}  // namespace penstock::http
