// Which revision a request is for, and which it has come to.
#include "dispatch/dispatcher.h"

namespace penstock::dispatch {

bool Dispatcher::is_for(const std::string& digest, const PlaceRequest& ask) {
  const std::lock_guard lock(mutex_);
  return replicas_.is_for(digest, {.session = ask.session, .share = ask.share});
}

bool Dispatcher::is_of(const routing::Replica& replica, const std::string& digest) const {
  const std::lock_guard lock(mutex_);
  return replica.route().template_digest == digest;
}

bool Dispatcher::has_rest(std::span<const routing::ReplicaId> excluded) const {
  const std::lock_guard lock(mutex_);
  return replicas_.has_rest(excluded);
}

}  // namespace penstock::dispatch
