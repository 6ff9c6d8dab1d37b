#include <memory>
#include <string>

#include "http/peer_address.h"
#include "http/session.h"

namespace penstock::http {

// The part of the budget for bodies that is the tenant's, or the address's where there is no key.
std::shared_ptr<runtime::BodyBudget> Session::own_bodies() {
  const std::string& tenant = caller_->tenant->id;
  if (!own_bodies_ || own_bodies_of_ != tenant) {
    const std::string client = tenant.empty()
                                   ? "address " + network_of(connection_->client_address())
                                   : "tenant " + tenant;
    own_bodies_ = services_.bodies.part_of(client);
    own_bodies_of_ = tenant;
  }
  return own_bodies_;
}

}  // namespace penstock::http
