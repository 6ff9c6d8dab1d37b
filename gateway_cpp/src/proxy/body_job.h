// A large body of a request, and what a side thread does with it: reads it or hashes it, while the
// request's coroutine waits for that or goes on.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "admission/fingerprint.h"
#include "openai/request.h"
#include "runtime/awaitable.h"
#include "runtime/body_budget.h"
#include "runtime/signal.h"
#include "upstream/large_body.h"

namespace penstock::runtime {
class SideThreads;
}  // namespace penstock::runtime

namespace penstock::proxy {

// Its share of the budget goes back when nobody holds it any more, be it the request, a side thread
// or the way to a replica.
struct LargeBody {
  LargeBody(std::string body, runtime::BodyShare held)
      : text(std::make_shared<std::string>(std::move(body))), share(std::move(held)) {}

  // Who keeps it beyond the request holds no share.
  const std::shared_ptr<std::string> text;
  runtime::BodyShare share;

  static upstream::SharedBody bytes_of(std::shared_ptr<LargeBody> body) {
    const std::string* bytes = body->text.get();
    return {std::move(body), bytes};
  }
};

// Owned by the request, and by a side thread until it is done. `body` and the results are the side
// thread's from when it begins until then; the rest is the I/O thread's, but for the state.
class BodyJob {
 public:
  // Is it JSON, and what does the gateway need to know of it?
  static std::shared_ptr<BodyJob> reading(const openai::Endpoint& endpoint,
                                          std::shared_ptr<LargeBody> body,
                                          const base::BodyElements& most);
  static std::shared_ptr<BodyJob> hashing(std::string deployment_uid, std::string_view path,
                                          std::shared_ptr<LargeBody> body);

  // `news` is raised on the I/O thread of `io` when it is done, unless the job was left by then.
  static void start(const std::shared_ptr<BodyJob>& job, runtime::SideThreads& threads,
                    const runtime::Executor& io, runtime::Signal& news);

  // Throws what the work threw.
  bool done() const;
  // Nobody waits for it any more: if it has not begun it never does, and its body goes now.
  void leave();

  // ---- when it is done
  std::optional<base::Result<openai::Request>> request;
  std::optional<admission::Fingerprint> fingerprint;

 private:
  enum class State : uint8_t { kWaits, kBegun, kLeft };
  using Work = std::function<void(BodyJob&)>;
  BodyJob(std::shared_ptr<LargeBody> body, Work work)
      : body_(std::move(body)), work_(std::move(work)) {}
  void run() noexcept;

  std::shared_ptr<LargeBody> body_;  // null once it is done or left
  const Work work_;
  std::atomic<State> state_{State::kWaits};
  std::exception_ptr broken_;
  bool done_ = false;
};

}  // namespace penstock::proxy
