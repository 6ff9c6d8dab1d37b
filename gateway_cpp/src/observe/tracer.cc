#include "observe/tracer.h"

#include <algorithm>

#include "base/config.h"
#include "observe/curl_post.h"

namespace penstock::observe {
namespace {

// What an operator says of all processes goes before what each says of itself, but for its name.
NamedTexts resource_of(const NamedTexts& said, const std::string& gateway_id,
                       const std::string& node) {
  NamedTexts resource = {{"service.name", "penstock-gateway"},
                         {"service.instance.id", gateway_id},
                         {"service.version", std::string(base::version())},
                         {"host.name", node}};
  for (const auto& one : said) {
    const auto found =
        std::ranges::find(resource, one.first, &std::pair<std::string, std::string>::first);
    if (found == resource.end()) resource.push_back(one);
  }
  return resource;
}

}  // namespace

std::unique_ptr<OtlpSender> make_sender(const Variables& variables, const std::string& gateway_id,
                                        const std::string& node, base::Log& log) {
  const auto collector = collector_of(variables);
  if (!collector) {
    log.error("no traces are sent", {{"reason", collector.error().message}});
    return nullptr;
  }
  if (collector->url.empty()) return nullptr;
  log.info("traces", {{"collector", collector->shown()}});
  return std::make_unique<OtlpSender>(std::make_unique<CurlPost>(*collector), *collector,
                                      resource_of(collector->resource, gateway_id, node), log);
}

}  // namespace penstock::observe
