#include "simulated/adapters.h"

#include <gtest/gtest.h>

namespace penstock::replica::simulated {
namespace {

const AdapterId kPirate{"pirate@1", "one"};

TEST(AdaptersTest, NoCallBeginsWithOneThatIsClosedUntilItIsOpenedAgain) {
  Adapters adapters;
  adapters.add(kPirate, Time(0));
  EXPECT_TRUE(adapters.enter(kPirate, Time(1)));
  adapters.close("pirate@1");
  EXPECT_FALSE(adapters.enter(kPirate, Time(2)));
  EXPECT_NE(adapters.digest_of("pirate@1"), nullptr) << "it is still held";
  adapters.reopen("pirate@1");
  EXPECT_TRUE(adapters.enter(kPirate, Time(3)));
}

TEST(AdaptersTest, OneThatWasClosedIsOpenWhenItComesAgain) {
  Adapters adapters;
  adapters.add(kPirate, Time(0));
  adapters.close("pirate@1");
  EXPECT_TRUE(adapters.remove("pirate@1"));
  adapters.reopen("pirate@1");  // nothing to open
  adapters.add(kPirate, Time(1));
  EXPECT_TRUE(adapters.enter(kPirate, Time(2)));
}

}  // namespace
}  // namespace penstock::replica::simulated
