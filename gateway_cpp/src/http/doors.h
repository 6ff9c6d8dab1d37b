// Who is served: a request has to name this gateway, and a web page has to be one that may call.
// Without this any page in an operator's browser could drive a gateway that only the browser
// reaches: directly, or by a name of its own that it makes lead here. Values only; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "http/strict_head.h"

namespace penstock::http {

class Doors {
 public:
  // machine_name: what this machine calls itself; empty: not known.
  Doors(const base::GatewayConfig& config, std::string_view machine_name);

  // Why this request is not served; nothing if it is.
  std::optional<base::Error> refusal(const RequestHead& head) const;

 private:
  bool knows_host(std::string_view host) const;
  bool knows_origin(const RequestHead& head) const;

  std::vector<std::string> names_;
  bool any_host_ = false;
  std::string cors_origin_;
};

// The name without its domain is one of them too.
std::string machine_name();

// Whether a body of this content type is one of JSON. Only a client that is no browser may leave
// the type out: what a page may send to any address without asking first is not JSON by its type.
bool is_json(const RequestHead& head);

}  // namespace penstock::http
