#include "routing/elsewhere.h"

#include <array>

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

// Of what the request needs besides its endpoint and adapter.
std::optional<PassedOver> lacks(const Route& there, const Needs& needs) {
  if (needs.tools && there.deployment->without_tools) return PassedOver::kNoTools;
  if (needs.no_engine && !there.deployment->managed) return PassedOver::kHasEngine;
  return std::nullopt;
}

}  // namespace

std::string_view name(PassedOver why) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "unknown",    "no_endpoint", "no_adapter", "no_tools",
      "has_engine", "not_allowed", "no_replica"};
  return kNames.at(static_cast<std::size_t>(why));
}

std::variant<Route, PassedOver> route_elsewhere(const Routes& routes, const Route& named,
                                                const std::string& deployment, const Needs& needs) {
  const std::string_view adapter = adapter_in(needs.model, named);
  const auto there = routes.resolve(deployment + std::string(adapter), needs.share);
  if (!there && !routes.deployments().contains(deployment)) return PassedOver::kUnknown;
  if (!there || there->deployment->name != deployment) return PassedOver::kNoAdapter;
  if (refuses(*there, needs.endpoint)) return PassedOver::kNoEndpoint;
  if (!keeps_adapter(named, *there, adapter)) return PassedOver::kNoAdapter;
  if (const auto why = lacks(*there, needs)) return *why;
  return *there;
}

std::variant<Route, PassedOver> route_shadow(const Routes& routes, const std::string& deployment,
                                             const std::string& adapter, const Needs& needs) {
  const auto there = routes.resolve(adapter.empty() ? deployment : deployment + ":" + adapter);
  if (!there && !routes.deployments().contains(deployment)) return PassedOver::kUnknown;
  if (!there || there->deployment->name != deployment) return PassedOver::kNoAdapter;
  if (refuses(*there, needs.endpoint)) return PassedOver::kNoEndpoint;
  if (const auto why = lacks(*there, needs)) return *why;
  return *there;
}

}  // namespace penstock::routing
