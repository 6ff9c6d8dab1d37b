#include "http/strict_head.h"

#include <gtest/gtest.h>

namespace penstock::http {
namespace {

const std::string kPost = "POST /v1/chat/completions HTTP/1.1\r\n";

std::string fault_of(const std::string& head) {
  const auto read = read_head(head);
  const auto* fault = std::get_if<HeadFault>(&read);
  return fault == nullptr ? std::string() : fault->what;
}

RequestHead good(std::string_view head) {
  const auto read = read_head(head);
  EXPECT_TRUE(std::holds_alternative<RequestHead>(read)) << head;
  return std::get<RequestHead>(read);
}

KeepAlive keep_alive(const std::string& fields, const std::string& version = "1.1") {
  const std::string head = "GET / HTTP/" + version + "\r\nHost: a\r\n" + fields + "\r\n";
  return good(head).keep_alive;
}

TEST(StrictHead, TakesWhatClientsSend) {
  for (const std::string& head :
       {kPost + "Host: a\r\nContent-Length: 12\r\n\r\n",
        kPost + "host: a\r\ntransfer-encoding: Chunked\r\n\r\n",
        kPost + "Host:a\r\nX-Empty:\r\nX-Tab:\ta\t\r\n\r\n",
        kPost + "Host: a\r\nX-Latin: caf\xe9\r\n\r\n", std::string("GET / HTTP/1.0\r\n\r\n"),
        std::string("GET http://a/readyz?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")}) {
    EXPECT_EQ(fault_of(head), "") << head;
  }
}

TEST(StrictHead, RefusesWhatTwoReadersCouldReadInTwoWays) {
  for (const std::string& head : {
           kPost + "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
           kPost + "Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
           kPost + "Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
           kPost + "Host: a\r\nContent-Length: 1, 1\r\n\r\n",
           kPost + "Host: a\r\nContent-Length: +1\r\n\r\n",
           kPost + "Host: a\r\nContent-Length: -1\r\n\r\n",
           kPost + "Host: a\r\nContent-Length: 0x1\r\n\r\n",
           kPost + "Host: a\r\nContent-Length:\r\n\r\n",
           kPost + "Host: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
           kPost + "Host: a\r\nTransfer-Encoding: identity\r\n\r\n",
           kPost + "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
           kPost + "Host: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
           kPost + "Host: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
           kPost + "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
           kPost + "Host: a\r\nContent-Length : 1\r\n\r\n",
           kPost + "Host: a\r\nX: a\r\n folded\r\n\r\n",
           kPost + "Host: a\r\n Content-Length: 1\r\n\r\n",
           kPost + "Host: a\r\nX: a\nContent-Length: 5\r\n\r\n",
           kPost + "Host: a\r\nX: a\rContent-Length: 5\r\n\r\n",
           kPost + "Host: a\r\nno colon\r\n\r\n",
           kPost + "Host: a\r\n: no name\r\n\r\n",
           kPost + "Host: a\r\nX: " + std::string(1, '\0') + "\r\n\r\n",
           kPost + "Host: a\r\nHost: b\r\n\r\n",
           kPost + "\r\n",
           kPost + "Host: a b\r\n\r\n",
           kPost + "Host: u@a\r\n\r\n",
           kPost + "Host:\r\n\r\n",
           kPost + "Host: a:b\r\n\r\n",
           kPost + "Host: a,b\r\n\r\n",
           kPost + "Host: [::1\r\n\r\n",
           kPost + "Host: a\r\nOrigin: b\r\nOrigin: c\r\n\r\n",
           std::string("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
           std::string("POST /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("POST /\tb HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("POST / HTTP/2.0\r\nHost: a\r\n\r\n"),
           std::string("POST / HTTP/1.10\r\nHost: a\r\n\r\n"),
           std::string("POST  HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("PO(ST / HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("/ HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("\x16\x03\x01\r\n\r\n"),
       }) {
    EXPECT_NE(fault_of(head), "") << head;
  }
}

TEST(StrictHead, ReadsWhatDecidesWhetherTheBodyIsTaken) {
  const std::string text =
      kPost +
      "Host: a:80\r\nContent-Type: application/json\r\nOrigin: http://b\r\n"
      "Expect: 100-Continue\r\nContent-Length: 12\r\nX-Request-Id: mine\r\n\r\n";
  const RequestHead head = good(text);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1/chat/completions");
  EXPECT_EQ(head.host, "a:80");
  EXPECT_EQ(head.content_type, "application/json");
  EXPECT_EQ(head.origin, "http://b");
  EXPECT_EQ(head.request_id, "mine");
  EXPECT_EQ(head.content_length, 12U);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_TRUE(head.has_body());
}

TEST(StrictHead, ReadsConnectionAsOneListOverAllItsLines) {
  EXPECT_EQ(keep_alive(""), KeepAlive::kYes);
  EXPECT_EQ(keep_alive("Connection: close\r\n"), KeepAlive::kNo);
  EXPECT_EQ(keep_alive("Connection: keep-alive\r\nConnection: close\r\n"), KeepAlive::kNo);
  EXPECT_EQ(keep_alive("Connection: x, Close ,y\r\n"), KeepAlive::kNo);
  EXPECT_EQ(keep_alive("", "1.0"), KeepAlive::kNo);
  EXPECT_EQ(keep_alive("Connection: x\r\nConnection: Keep-Alive\r\n", "1.0"), KeepAlive::kYes);
}

TEST(StrictHead, TellsThePathOfAnAbsoluteTargetFromItsHost) {
  EXPECT_EQ(good("GET HTTP://a/x?y HTTP/1.1\r\nHost: A\r\n\r\n").target, "/x?y");
  EXPECT_EQ(good("GET http://a?x=/metrics HTTP/1.1\r\nHost: a\r\n\r\n").target, "/");
  EXPECT_EQ(good("GET http://a/ HTTP/1.0\r\n\r\n").host, "a");
  EXPECT_EQ(good("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").target, "*");
}

TEST(StrictHead, PassesOverExpectFromAnOldClient) {
  EXPECT_FALSE(good("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects_continue);
}

}  // namespace
}  // namespace penstock::http
