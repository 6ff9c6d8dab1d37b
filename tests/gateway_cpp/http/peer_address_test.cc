#include "http/peer_address.h"

#include <gtest/gtest.h>

namespace penstock::http {
namespace {

TEST(NetworkOf, IsAnIpv4AddressItselfAndOfAnIpv6OneAllThatOneClientHas) {
  EXPECT_EQ(network_of("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("2001:db8:1:2::9"), network_of("2001:db8:1:2:3:4:5:6"));
  EXPECT_NE(network_of("2001:db8:1:3::9"), network_of("2001:db8:1:2::9"));
  EXPECT_EQ(network_of(""), "");
}

TEST(PeerAddress, IsEmptyOfWhatIsNoSocket) { EXPECT_EQ(peer_address(-1), ""); }

}  // namespace
}  // namespace penstock::http
