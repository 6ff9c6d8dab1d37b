#include "http/strict_head.h"

#include <gtest/gtest.h>

namespace penstock::http {
namespace {

const std::string kPost = "POST /v1/chat/completions HTTP/1.1\r\n";

TEST(StrictHead, TakesWhatClientsSend) {
  for (const std::string& head :
       {kPost + "Host: a\r\nContent-Length: 12\r\n\r\n",
        kPost + "host: a\r\ntransfer-encoding: Chunked\r\n\r\n",
        kPost + "Host:a\r\nX-Empty:\r\nX-Tab:\ta\t\r\n\r\n",
        kPost + "Host: a\r\nX-Latin: caf\xe9\r\n\r\n", std::string("GET / HTTP/1.0\r\n\r\n"),
        std::string("GET http://a/readyz?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")}) {
    EXPECT_EQ(find_fault(head), std::nullopt) << head;
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
    EXPECT_NE(find_fault(head), std::nullopt) << head;
  }
}

}  // namespace
}  // namespace penstock::http
