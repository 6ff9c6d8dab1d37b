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

// `target`: path and query, or "*".
Match match(std::string_view method, std::string_view target);

}  // namespace penstock::http
