#include "base/address.h"

#include <gtest/gtest.h>

namespace penstock::base {
namespace {

TEST(Address, RefusesWhatIsNotHostAndPort) {
  for (const char* text : {"", ":", ":80", "host", "host:", "host:x", "host:1x", "::1:80", "[]:1",
                           "host:65536", "host: 80"}) {
    EXPECT_FALSE(parse_address(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace penstock::base
