#include "http/router.h"

#include <algorithm>
#include <array>
#include <cctype>

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

std::string_view path_of(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return target.substr(0, target.find_first_of("?#"));
}

Match allow(std::string_view method, std::string_view allowed, Found found) {
  if (method == "OPTIONS") return Preflight{};
  if (method == allowed || (method == "HEAD" && allowed == "GET")) return found;
  return WrongMethod{allowed == "GET" ? "GET, HEAD, OPTIONS" : "POST, OPTIONS"};
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

Match match(std::string_view method, std::string_view target) {
  const std::string_view path = path_of(target);
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

bool may_be_json(std::string_view content_type) {
  std::string media = lower(content_type.substr(0, content_type.find(';')));
  media.erase(std::remove_if(media.begin(), media.end(),
                             [](unsigned char c) { return c == ' ' || c == '\t'; }),
              media.end());
  return media.empty() || media == "application/json" || media.ends_with("+json") ||
         media == "text/plain" || media == "application/x-www-form-urlencoded";
}

}  // namespace penstock::http
