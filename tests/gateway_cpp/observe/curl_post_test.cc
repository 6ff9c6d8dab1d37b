// Posts to a server that the test plays on a socket.
#include "observe/curl_post.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace penstock::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Answers each request of one connection after the other with these texts; an empty one: nothing,
// until its client leaves.
class OneAnswerServer {
 public:
  explicit OneAnswerServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 4);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswerServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  OneAnswerServer(const OneAnswerServer&) = delete;
  OneAnswerServer& operator=(const OneAnswerServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1/traces"; }
  // What it was sent, once the client is gone.
  const std::vector<std::string>& requests() const { return requests_; }
  size_t connections() const { return connections_; }

 private:
  void serve() {
    while (answered_ < answers_.size()) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      ++connections_;
      while (answered_ < answers_.size() && answer(client)) ++answered_;
      ::close(client);
    }
  }

  bool answer(int client) {
    std::string request;
    std::array<char, 65536> part{};
    while (!is_whole(request)) {
      const ssize_t got = ::recv(client, part.data(), part.size(), 0);
      if (got <= 0) return false;
      request.append(part.data(), static_cast<size_t>(got));
    }
    requests_.push_back(request);
    const std::string& text = answers_[answered_];
    if (text.empty()) return ::recv(client, part.data(), part.size(), 0) > 0;
    return ::send(client, text.data(), text.size(), MSG_NOSIGNAL) > 0;
  }

  static bool is_whole(const std::string& request) {
    constexpr std::string_view kLength = "Content-Length: ";
    const size_t end = request.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const size_t length = request.find(kLength);
    return request.size() >= end + 4 + std::stoul(request.substr(length + kLength.size()));
  }

  const std::vector<std::string> answers_;
  int listener_ = -1;
  unsigned port_ = 0;
  size_t answered_ = 0;
  size_t connections_ = 0;
  std::vector<std::string> requests_;
  std::thread thread_;
};

std::string said(const std::string& status, const std::string& headers = "") {
  return "HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: 2\r\n\r\nok";
}

PostAnswer post(const OneAnswerServer& server, milliseconds within = seconds(20)) {
  CurlPost curl({.url = server.url()});
  return curl.send("body", within);
}

TEST(CurlPost, SendsABodyWithItsHeadersOverOneConnection) {
  std::vector<std::string> requests;
  {
    OneAnswerServer server({said("200 OK"), said("200 OK")});
    {
      CurlPost curl({.url = server.url(), .headers = {{"x-key", "a b"}}});
      EXPECT_EQ(curl.send("first", seconds(20)).body, "ok");
      EXPECT_EQ(curl.send("second", seconds(20)).status, 200U);
    }
    EXPECT_EQ(server.connections(), 1U);
    requests = server.requests();
  }
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].substr(0, 24), "POST /v1/traces HTTP/1.1");
  EXPECT_NE(requests[0].find("x-key: a b\r\n"), std::string::npos);
  EXPECT_NE(requests[0].find("Content-Type: application/x-protobuf\r\n"), std::string::npos);
  EXPECT_EQ(requests[0].find("Expect"), std::string::npos);
  EXPECT_TRUE(requests[0].ends_with("\r\n\r\nfirst"));
  EXPECT_TRUE(requests[1].ends_with("\r\n\r\nsecond"));
}

TEST(CurlPost, TellsWhatTheCollectorAnswersAndWhenItWantsToBeAskedAgain) {
  OneAnswerServer server({said("503 Busy", "Retry-After: 7\r\n")});
  const PostAnswer answer = post(server);
  EXPECT_EQ(answer.status, 503U);
  EXPECT_EQ(answer.retry_after, seconds(7));
}

TEST(CurlPost, FollowsNobodyElsewhereWithItsHeaders) {
  OneAnswerServer server({said("307 There", "Location: http://127.0.0.1:1/\r\n")});
  EXPECT_EQ(post(server).status, 307U);
}

TEST(CurlPost, SaysWhyNoAnswerCame) {
  std::string url;
  { url = OneAnswerServer({}).url(); }
  CurlPost curl({.url = url});
  const PostAnswer answer = curl.send("body", seconds(20));
  EXPECT_EQ(answer.status, 0U);
  EXPECT_NE(answer.error, "");
}

TEST(CurlPost, WaitsNoLongerThanItMay) {
  OneAnswerServer server({""});
  EXPECT_EQ(post(server, milliseconds(50)).status, 0U);
}

TEST(CurlPost, EndsWhatIsUnderWayWhenItIsTold) {
  OneAnswerServer server({""});
  CurlPost curl({.url = server.url()});
  curl.end_within(milliseconds(0));
  EXPECT_EQ(curl.send("body", std::chrono::hours(1)).status, 0U);
}

TEST(CurlPost, TakesNoAnswerThatIsTooLong) {
  const std::string body(100'000, 'x');
  OneAnswerServer server({"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body});
  const PostAnswer answer = post(server);
  EXPECT_EQ(answer.status, 0U);
  EXPECT_LT(answer.body.size(), body.size());
}

}  // namespace
}  // namespace penstock::observe
