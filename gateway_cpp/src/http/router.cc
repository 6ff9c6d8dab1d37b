#include "http/router.h"

#include <array>
#include <utility>

#include "http/syntax.h"
#include "openai/models.h"

namespace penstock::http {

namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";

// As the Allow header names them.
constexpr std::string_view kAllowGet = "GET, HEAD, OPTIONS";
constexpr std::string_view kAllowPost = "POST, OPTIONS";
constexpr std::string_view kAllowGetAndPost = "GET, HEAD, POST, OPTIONS";

struct Row {
  std::string_view path;
  Page page;
  std::string_view methods;
};

// The names of the status pages are those of Kubernetes and of vLLM.
constexpr std::array<Row, 12> kRows = {{{"/v1/models", Page::kModels, kAllowGet},
                                        {"/v1/usage", Page::kUsage, kAllowGet},
                                        {"/livez", Page::kLivez, kAllowGet},
                                        {"/readyz", Page::kReadyz, kAllowGet},
                                        {"/ready", Page::kReadyz, kAllowGet},
                                        {"/startupz", Page::kStartupz, kAllowGet},
                                        {"/health", Page::kHealth, kAllowGet},
                                        {"/health/deep", Page::kDeepHealth, kAllowGet},
                                        {"/ping", Page::kPing, kAllowGetAndPost},
                                        {"/version", Page::kVersion, kAllowGet},
                                        {"/openapi.json", Page::kOpenapi, kAllowGet},
                                        {"/metrics", Page::kMetrics, kAllowGet}}};

// What is at a path, whatever is done there.
struct PathMatch {
  Found found;
  std::string_view methods;
};

std::optional<PathMatch> find(std::string_view path) {
  for (const Row& row : kRows) {
    if (row.path == path) return PathMatch{{row.page}, row.methods};
  }
  if (const auto* endpoint = openai::find_endpoint(path)) {
    return PathMatch{{Page::kEndpoint, endpoint}, kAllowPost};
  }
  if (path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size()) {
    return PathMatch{
        {Page::kModel, nullptr, openai::percent_decode(path.substr(kModelPrefix.size()))},
        kAllowGet};
  }
  return std::nullopt;
}

bool takes(std::string_view methods, std::string_view method) {
  bool taken = false;
  each_element(methods, [&](std::string_view one) { taken |= one == method; });
  return taken;
}

}  // namespace

Match match(std::string_view method, std::string_view target) {
  auto place = find(openai::path_of(target));
  if (method == "OPTIONS") {
    return place ? Options{place->found.page, place->methods} : Options{};
  }
  if (!place) return NotFound{};
  if (!takes(place->methods, method)) return WrongMethod{place->methods};
  return std::move(place->found);
}

}  // namespace penstock::http
