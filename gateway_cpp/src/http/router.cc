#include "http/router.h"

#include <array>

#include "openai/models.h"

namespace penstock::http {

namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";

struct Row {
  std::string_view path;
  Page page;
  std::string_view method;
};

constexpr std::array<Row, 7> kRows = {{{"/v1/chat/completions", Page::kChatCompletions, "POST"},
                                       {"/v1/completions", Page::kCompletions, "POST"},
                                       {"/v1/models", Page::kModels, "GET"},
                                       {"/livez", Page::kLivez, "GET"},
                                       {"/readyz", Page::kReadyz, "GET"},
                                       {"/health", Page::kReadyz, "GET"},
                                       {"/metrics", Page::kMetrics, "GET"}}};

Match allow(std::string_view method, std::string_view allowed, Found found) {
  if (method == allowed || (method == "HEAD" && allowed == "GET")) return found;
  return WrongMethod{allowed == "GET" ? "GET, HEAD, OPTIONS" : "POST, OPTIONS"};
}

}  // namespace

Match match(std::string_view method, std::string_view target) {
  // Any path: a page that is told 404 before it may ask would show an error of another kind.
  if (method == "OPTIONS") return Preflight{};
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  for (const Row& row : kRows) {
    if (row.path == path) return allow(method, row.method, {row.page, row.path, {}});
  }
  if (path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size()) {
    return allow(
        method, "GET",
        {Page::kModel, kModelPrefix, openai::percent_decode(path.substr(kModelPrefix.size()))});
  }
  return NotFound{};
}

}  // namespace penstock::http
