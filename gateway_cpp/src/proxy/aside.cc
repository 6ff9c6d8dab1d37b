// What large bodies take besides the phases that all requests go through: they are read, and
// hashed, beside the I/O threads.
#include <utility>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"

namespace penstock::proxy {

// The request goes on when its body has been read, or ends at once when its client has left.
Awaitable<base::MaybeError> RequestFlow::parse_aside(Exchange& x) {
  x.large = std::make_shared<LargeBody>(std::move(x.ask.body), std::move(x.ask.share));
  x.opening.bytes = 0;  // it is hashed at the side, too
  x.job = BodyJob::reading(*x.ask.endpoint, x.large, parts_.config.body_elements);
  BodyJob::start(x.job, parts_.aside, parts_.io, x.reply.signal());
  while (!x.job->done()) {
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    co_await x.reply.signal().wait();
  }
  const auto job = std::exchange(x.job, nullptr);
  if (!*job->request) co_return job->request->error();
  x.take(std::move(**job->request));
  co_return std::nullopt;
}

// Lets go of the body; its fingerprint will be there when it is asked for.
Awaitable<void> RequestFlow::hash_aside(Exchange& x) {
  auto body = std::exchange(x.large, nullptr);
  if (x.danger.fingerprint) co_return;
  x.job = BodyJob::hashing(x.at.route.deployment->uid, x.ask.endpoint->path, std::move(body));
  BodyJob::start(x.job, parts_.aside, parts_.io, x.reply.signal());
}

}  // namespace penstock::proxy
