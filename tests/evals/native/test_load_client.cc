// The load client against a server that this test plays: what it counts as what.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "load_client.h"

namespace penstock::evals {
namespace {

const std::string kHead =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const std::string kEvent = "data: {\"choices\":[]}\n\n";
const std::string kDone = "data: [DONE]\n\n";

enum class Afterwards { kClose, kHold };

// Gives every connection the same bytes, and closes it or says nothing more.
class Server {
 public:
  explicit Server(std::string answer, Afterwards afterwards = Afterwards::kClose)
      : listener_(::socket(AF_INET, SOCK_STREAM, 0)),
        answer_(std::move(answer)),
        afterwards_(afterwards) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    (void)::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), size);
    ::listen(listener_.get(), 64);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_), &size);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  const sockaddr_in& address() const { return address_; }

 private:
  void serve() {
    while (true) {
      Descriptor client(::accept(listener_.get(), nullptr, nullptr));
      if (client.get() < 0) return;
      std::array<char, 256> request;
      if (::recv(client.get(), request.data(), request.size(), 0) <= 0) continue;
      ::send(client.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
      if (afterwards_ == Afterwards::kHold) held_.push_back(std::move(client));
    }
  }

  Descriptor listener_;
  std::string answer_;
  const Afterwards afterwards_;
  std::vector<Descriptor> held_;
  sockaddr_in address_{};
  std::thread thread_;
};

LoadReport load(const std::string& answer) {
  const Server server(answer);
  LoadOptions options;
  options.target = {server.address(), "GET / HTTP/1.1\r\n\r\n"};
  options.connections = 2;
  options.requests = 20;
  options.warmup = std::chrono::milliseconds(0);
  return LoadClient(options).run();
}

TEST(LoadClient, CountsWholeAnswersAndTheirEvents) {
  const LoadReport report = load(kHead + kEvent + kEvent + kDone);
  EXPECT_GE(report.counts.answers, 20u);
  // Each of the two connections may be within an answer at either edge of the window.
  EXPECT_NEAR(double(report.counts.events), 2.0 * double(report.counts.answers), 4);
  EXPECT_EQ(report.counts.failures(), 0u) << report.problem;
  EXPECT_GT(report.seconds, 0);
}

TEST(LoadClient, CountsAStreamWithoutItsEndAsTruncated) {
  const LoadReport report = load(kHead + kEvent);
  EXPECT_EQ(report.counts.answers, 0u);
  EXPECT_GE(report.counts.truncated, 1000u);
  EXPECT_EQ(report.problem, "a stream ended without [DONE]");
}

TEST(LoadClient, CountsAChunkedStreamThatIsCutAsTruncated) {
  const LoadReport report = load(
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
      "16\r\n" +
      kEvent + "\r\n");
  EXPECT_GE(report.counts.truncated, 1000u);
  EXPECT_EQ(report.problem, "connection closed in an answer");
}

TEST(LoadClient, CountsAnErrorInTheStream) {
  const LoadReport report = load(kHead + kEvent + "data: {\"error\":{\"code\":502}}\n\n" + kDone);
  EXPECT_EQ(report.counts.answers, 0u);
  EXPECT_GE(report.counts.stream_errors, 1000u);
  EXPECT_EQ(report.problem, "error in the stream: {\"error\":{\"code\":502}}");
}

TEST(LoadClient, CountsRefusedRequests) {
  const LoadReport report = load("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n");
  EXPECT_GE(report.counts.failed_requests, 1000u);
  EXPECT_EQ(report.problem, "status 503");
}

TEST(LoadClient, CountsRefusedConnections) {
  LoadOptions options;
  options.target.address.sin_family = AF_INET;
  options.target.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  options.target.address.sin_port = htons(1);
  const LoadReport report = LoadClient(options).run();
  EXPECT_GE(report.counts.failed_requests, 1000u);
  EXPECT_EQ(report.problem, "cannot connect: Connection refused");
}

TEST(LoadClient, TellsHowLongAStreamHasBeenSilent) {
  const Server server(kHead + kEvent, Afterwards::kHold);
  LoadOptions options;
  options.target = {server.address(), "GET / HTTP/1.1\r\n\r\n"};
  options.warmup = std::chrono::milliseconds(0);
  options.window = std::chrono::milliseconds(50);
  const LoadReport report = LoadClient(options).run();
  EXPECT_EQ(report.counts.failures(), 0u) << report.problem;
  EXPECT_GE(report.longest_silence, options.window);
  EXPECT_LT(report.longest_silence, std::chrono::seconds(20));
}

TEST(LoadClient, EndsItsWindowWhenItIsStopped) {
  const Server server(kHead + kEvent, Afterwards::kHold);
  LoadClient* running = nullptr;
  LoadOptions options;
  options.target = {server.address(), "GET / HTTP/1.1\r\n\r\n"};
  options.warmup = std::chrono::milliseconds(0);
  options.window = std::chrono::hours(1);
  options.on_window = [&] { running->stop(); };
  LoadClient client(options);
  running = &client;
  const LoadReport report = client.run();
  EXPECT_GT(report.seconds, 0);
  EXPECT_LT(report.seconds, 60);
}

}  // namespace
}  // namespace penstock::evals
