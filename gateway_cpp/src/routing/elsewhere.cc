#include "routing/elsewhere.h"

namespace penstock::routing {

namespace {

// What a request for an adapter says behind the colon; nothing without one.
std::string_view adapter_in(std::string_view model, const Route& named) {
  const std::size_t colon = named.version ? model.rfind(':') : std::string_view::npos;
  return colon == std::string_view::npos ? std::string_view() : model.substr(colon);
}

// Bytes that are known, and those that the request named where it named a version.
bool keeps_adapter(const Route& named, const Route& there, std::string_view adapter) {
  if (!named.version) return !there.version;
  const bool names_version = adapter.find('@') != std::string_view::npos;
  return !there.digest().empty() && (!names_version || there.digest() == named.digest());
}

}  // namespace

std::optional<Route> route_elsewhere(const Routes& routes, const Route& named,
                                     const std::string& deployment, const Needs& needs) {
  const std::string_view adapter = adapter_in(needs.model, named);
  const auto there = routes.resolve(deployment + std::string(adapter), needs.sticky);
  if (!there || there->deployment->name != deployment) return std::nullopt;
  if (refuses(*there, needs.endpoint) || !keeps_adapter(named, *there, adapter)) {
    return std::nullopt;
  }
  if (needs.tools && there->deployment->without_tools) return std::nullopt;
  if (needs.no_engine && !there->deployment->managed) return std::nullopt;
  return *there;
}

}  // namespace penstock::routing
