// Which handler a method and a path name. Pure: no I/O, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "openai/endpoints.h"

namespace penstock::http {

enum class Page : uint8_t {
  kEndpoint,  // one of openai/endpoints
  kModels,
  kModel,
  kUsage,
  kLivez,
  kReadyz,
  kStartupz,
  kHealth,
  kPing,
  kDeepHealth,
  kVersion,
  kOpenapi,
  kMetrics,
};

struct Found {
  Page page;
  const openai::Endpoint* endpoint = nullptr;  // of kEndpoint: static
  std::string model_id = {};                   // of kModel: decoded
};
// What may be done at a path is asked for: by a browser, before it lets a page do it, of any path.
struct Options {
  std::optional<Page> page;  // none: nothing is there
  std::string_view allow;    // for the Allow header; empty: nothing is there
};
struct WrongMethod {
  std::string_view allow;  // for the Allow header
};
struct NotFound {};

using Match = std::variant<Found, Options, WrongMethod, NotFound>;

// `target`: path and query, or "*".
Match match(std::string_view method, std::string_view target);

}  // namespace penstock::http
