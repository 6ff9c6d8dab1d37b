// What a client has had of its answer, alone.
#include "proxy/delivery.h"

#include <gtest/gtest.h>

namespace penstock::proxy {
namespace {

using More = Delivery::More;
using openai::Dialect;

const std::string kChunk =
    R"(data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m"})"
    "\n\n";
const std::string kDone = "data: [DONE]\n\n";

class DeliveryTest : public testing::Test {
 protected:
  // A piece comes from the replica and is with the client's system.
  std::string pass(const std::string& events, More more = More::kComes) {
    take(events, more);
    std::string written(delivery_.payload().bytes());
    delivery_.payload().clear();
    delivery_.arrived();
    return written;
  }
  void take(const std::string& events, More more = More::kComes) {
    delivery_.payload().append(events);
    delivery_.took(more);
  }

  Delivery delivery_{Dialect::kOpenAi};
};

TEST_F(DeliveryTest, HasHadAllOfAStreamOnceTheLastEventHasArrived) {
  delivery_.begin_stream();
  pass(kChunk);
  EXPECT_EQ(delivery_.had(), Had::kSome);
  take(kDone);
  EXPECT_FALSE(delivery_.has_all()) << "it was written, and is not there yet";
  delivery_.arrived();
  EXPECT_EQ(delivery_.had(), Had::kAll);
  EXPECT_FALSE(delivery_.is_closed());
  delivery_.end_stream();
  EXPECT_EQ(delivery_.had(), Had::kEnded);
}

TEST_F(DeliveryTest, IsClosedFromTheEndOnAndHasAllWhenThatHasArrived) {
  delivery_.begin_stream();
  take(kChunk + kDone, More::kNone);
  delivery_.end_stream();
  EXPECT_EQ(delivery_.had(), Had::kEnding);
  EXPECT_TRUE(delivery_.is_closed());
  delivery_.arrived();
  EXPECT_EQ(delivery_.had(), Had::kEnded);
}

TEST_F(DeliveryTest, HasNotHadAllWhereTheLastEventWasBehindWhenItLeft) {
  delivery_.begin_stream();
  pass(kDone);
  delivery_.lost();
  EXPECT_EQ(delivery_.had(), Had::kSome);
  delivery_.lost();
  EXPECT_EQ(delivery_.had(), Had::kSome);
}

TEST_F(DeliveryTest, IsNoStreamWhereItIsAnswered) {
  EXPECT_FALSE(delivery_.is_stream());
  delivery_.answer();
  EXPECT_FALSE(delivery_.is_stream());
  EXPECT_TRUE(delivery_.is_closed());
}

TEST_F(DeliveryTest, HoldsTheLastEventUntilTheAnswersMakingIsKnown) {
  delivery_.tell_making();
  delivery_.begin_stream();
  EXPECT_EQ(pass(kChunk + kDone), kChunk);
  EXPECT_EQ(delivery_.had(), Had::kSome);
  EXPECT_FALSE(delivery_.may_pass_on(kChunk));
  take("", More::kNone);
  EXPECT_EQ(delivery_.taken(), 0U);
  ASSERT_NE(delivery_.names(), nullptr);
  EXPECT_EQ(delivery_.names()->id, "c-1");
  delivery_.put_before_end("data: {}\n\n");
  EXPECT_EQ(delivery_.payload().bytes(), "data: {}\n\n" + kDone);
}

TEST_F(DeliveryTest, PassesOnWhatIsNotTheEnd) {
  EXPECT_TRUE(delivery_.may_pass_on(kChunk));
  EXPECT_FALSE(delivery_.may_pass_on(kDone));
  delivery_.begin_stream();
  delivery_.passed_on(kChunk);
  EXPECT_EQ(delivery_.taken(), kChunk.size());
  delivery_.arrived();
  EXPECT_EQ(delivery_.had(), Had::kSome);
}

TEST_F(DeliveryTest, TakesTheLastEventBackWhereTheAnswerIsNone) {
  delivery_.begin_stream();
  take(kChunk + kDone, More::kNone);
  delivery_.break_off("data: error\n\n");
  EXPECT_EQ(delivery_.payload().bytes(), kChunk + "data: error\n\n");
}

TEST_F(DeliveryTest, IsAnsweredOnceAndInOneWay) {
  for (const auto next :
       {Had::kNothing, Had::kSome, Had::kAll, Had::kEnding, Had::kEnded, Had::kAnswered}) {
    EXPECT_FALSE(kDelivery.allow(Had::kAnswered, next));
    EXPECT_FALSE(kDelivery.allow(Had::kEnded, next));
    EXPECT_FALSE(kDelivery.allow(next, Had::kNothing));
  }
  EXPECT_FALSE(kDelivery.allow(Had::kSome, Had::kAnswered));
}

}  // namespace
}  // namespace penstock::proxy
