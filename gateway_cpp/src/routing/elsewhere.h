// Where a request goes when another deployment than the one that it named is to answer it, be that
// a canary, a fallback, or for our own sake. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "routing/route_table.h"

namespace penstock::routing {

// What a request asks of whoever answers it.
struct Needs {
  std::string_view model = {};     // as the client wrote it
  ShareHash share = {};            // as for Routes::resolve
  std::string_view endpoint = {};  // path
  bool tools = false;              // it brings some
  bool no_engine = false;          // engines may die of it
};

// Why it does not go there.
enum class PassedOver : std::uint8_t {
  kUnknown,     // nobody has that name
  kNoEndpoint,  // that the request came to
  kNoAdapter,   // it has no known bytes there, or others than those of the version that was named
  kNoTools,     // which the request brings
  kHasEngine,   // that may die of it
  kNotAllowed,  // to its tenant
  kNoReplica,   // that could answer it
};
std::string_view name(PassedOver why);  // logs and refusals

// The deployment of that name, with the adapter that the request names, or why not; `named`: what
// the request was resolved to.
std::variant<Route, PassedOver> route_elsewhere(const Routes& routes, const Route& named,
                                                const std::string& deployment, const Needs& needs);

// Where a shadow goes, and with which adapter ("name@version"; empty: none), or why not: `needs`
// says what the request asks for, but for its model.
std::variant<Route, PassedOver> route_shadow(const Routes& routes, const std::string& deployment,
                                             const std::string& adapter, const Needs& needs);

}  // namespace penstock::routing
