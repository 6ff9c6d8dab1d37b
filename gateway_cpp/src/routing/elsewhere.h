// Where a request goes when another deployment than the one that it named is to answer it, be that
// a canary or a fallback. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "routing/route_table.h"

namespace penstock::routing {

// What a request asks of whoever answers it.
struct Needs {
  std::string_view model = {};     // as the client wrote it
  std::string_view sticky = {};    // as for Routes::resolve
  std::string_view endpoint = {};  // path
  bool tools = false;              // it brings some
  bool no_engine = false;          // engines may die of it
};

// The deployment of that name, with the adapter that the request names; `named`: what the request
// was resolved to. Nothing where that deployment is not known, has an engine and must have none, or
// cannot honour the request: its endpoint, its tools, an adapter that has no known bytes there, or
// others than those of the version that was named.
std::optional<Route> route_elsewhere(const Routes& routes, const Route& named,
                                     const std::string& deployment, const Needs& needs);

}  // namespace penstock::routing
