#include "http/handshake.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <utility>

namespace penstock::http {

namespace {

// What a step counts for among bodies that are read at the side: about what takes as long.
constexpr size_t kStepAsBytes = 64UL * 1024;

bool may_be_http(char first) {
  return (first >= 'A' && first <= 'Z') || first == '\r' || first == '\n';
}

}  // namespace

// One step, which may outlive the handshake. While a side thread has it, all but `left` is that
// thread's.
struct Handshake::Step {
  explicit Step(const tls::Credentials& credentials)
      : channel(std::make_unique<tls::Channel>(credentials)) {}

  // On a side thread, where nothing may be thrown.
  void run() noexcept try {
    if (left.load()) return;
    std::string_view rest = in;
    outcome = channel->shake_hands(rest, out);
    in.erase(0, in.size() - rest.size());
  } catch (const std::exception&) {
    outcome = tls::Channel::Handshake::kFailed;
  }

  std::unique_ptr<tls::Channel> channel;
  std::string in;
  std::string out;
  tls::Channel::Handshake outcome = tls::Channel::Handshake::kMore;
  bool done = false;              // the I/O thread's alone
  std::atomic<bool> left{false};  // nobody waits for it
};

Awaitable<Handshake::End> Handshake::run(std::chrono::milliseconds timeout) {
  timer_.arm(std::min(timeout, most_));
  std::shared_ptr<Step> step;
  for (;;) {
    const std::string_view bytes = co_await next_bytes();
    if (bytes.empty()) co_return End::kGone;
    if (!step) {
      if (may_be_http(bytes.front())) co_return End::kPlainHttp;
      if (!tls::Channel::may_begin(bytes.front())) {
        fault_ = "no TLS record";
        co_return End::kFailed;
      }
      step = std::make_shared<Step>(*port_.credentials.current());
    }
    step->in.assign(bytes);
    const bool computed = co_await compute(step);
    if (!computed) co_return End::kGone;
    if (connection_.send(step->out) == Sent::kBlocked) co_await connection_.flush(timer_);
    step->out.clear();
    if (step->outcome == tls::Channel::Handshake::kFailed) {
      fault_ = step->channel->fault();
      co_return End::kFailed;
    }
    if (step->outcome == tls::Channel::Handshake::kDone) {
      connection_.secure(std::move(step->channel), step->in);
      co_return End::kSecure;
    }
  }
}

// Empty: there is nobody to wait for.
Awaitable<std::string_view> Handshake::next_bytes() {
  while (!is_over()) {
    const std::string_view bytes = connection_.read();
    if (!bytes.empty()) co_return bytes;
    if (connection_.gone()) break;
    connection_.rest();
    co_await connection_.signal().wait();
  }
  co_return std::string_view();
}

// False: the client left or its time was over first.
Awaitable<bool> Handshake::compute(const std::shared_ptr<Step>& step) {
  const runtime::Executor io = co_await asio::this_coro::executor;
  step->done = false;
  port_.aside.add(kStepAsBytes, [step, io, &news = connection_.signal()] {
    step->run();
    asio::post(io, [step, &news] {
      step->done = true;
      if (!step->left.load()) news.raise();
    });
  });
  while (!step->done) {
    if (is_over()) {
      step->left.store(true);
      co_return false;
    }
    co_await connection_.signal().wait();
  }
  co_return true;
}

}  // namespace penstock::http
