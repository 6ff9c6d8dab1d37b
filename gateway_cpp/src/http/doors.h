// Who is served: a request has to name this gateway, and a web page has to be one that may call.
// Without this any page in an operator's browser could drive a gateway that only the browser
// reaches: directly, or by a name of its own that it makes lead here. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "http/machine_name.h"
#include "http/origins.h"
#include "http/strict_head.h"

namespace penstock::http {

class Doors {
 public:
  // Which names may stand in Host.
  enum class Hosts : uint8_t {
    kOwn,  // this machine's and those that the config allows
    kAny,  // whoever reaches it may read what it shows
  };

  // `machine` outlives the doors.
  Doors(const base::GatewayConfig& config, const MachineName& machine, Hosts hosts = Hosts::kOwn);

  // Why this request is not served; nothing if it is.
  std::optional<base::Error> refusal(const RequestHead& head) const;

  // The pages of other origins that may call.
  const Origins& origins() const { return origins_; }

 private:
  bool knows_host(std::string_view host) const;
  bool knows_origin(const RequestHead& head) const;

  const MachineName& machine_;
  std::vector<std::string> names_;
  bool any_host_;
  const Origins origins_;
};

// Of the status port. On loopback only programs and browsers of this machine reach it: a page that
// makes a name of its own lead here could read what goes on. Beyond loopback it is there to be read
// by whoever reaches it, and scrapers know it by names that nobody here does: those of services,
// of another network. It changes nothing, and a page under another name still reads nothing.
Doors::Hosts hosts_of_status_port(const base::GatewayConfig& config);

// Whether a body of this content type is one of JSON. Only a client that is no browser may leave
// the type out: what a page may send to any address without asking first is not JSON by its type.
bool is_json(const RequestHead& head);

}  // namespace penstock::http
