// A collector that the test plays: it takes, refuses, is slow or gone.
#include "observe/otlp_sender.h"

#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "log_capture.h"
#include "observe/gzip.h"
#include "penstock/v1/explain.pb.h"
#include "penstock/v1/otlp.pb.h"

namespace penstock::observe {
namespace {

using std::chrono::milliseconds;

// What the collector was sent, and what it answers to each.
class Played {
 public:
  explicit Played(std::vector<PostAnswer> answers) : answers_(std::move(answers)) {}

  PostAnswer send(const std::string& body) {
    std::unique_lock lock(mutex_);
    bodies_.push_back(body);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !holds_; });
    const std::size_t next = std::min(bodies_.size(), answers_.size());
    return answers_[next - 1];
  }
  void hold(bool holds) {
    const std::lock_guard lock(mutex_);
    holds_ = holds;
    changed_.notify_all();
  }
  bool gets(std::size_t bodies) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return bodies_.size() >= bodies; });
  }
  std::size_t requests(std::size_t body) {
    const std::lock_guard lock(mutex_);
    otlp::ExportTraceServiceRequest sent;
    EXPECT_TRUE(sent.ParseFromString(bodies_.at(body)));
    return static_cast<std::size_t>(sent.resource_spans(0).scope_spans(0).spans_size());
  }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = false;
  const std::vector<PostAnswer> answers_;  // the last one from then on
  std::vector<std::string> bodies_;
};

class PostToPlayed final : public HttpPost {
 public:
  explicit PostToPlayed(Played& played) : played_(played) {}
  PostAnswer send(const std::string& body, milliseconds /*within*/) override {
    return played_.send(body);
  }
  void end_within(milliseconds /*left*/) override { played_.hold(false); }

 private:
  Played& played_;
};

class OtlpSenderTest : public testing::Test {
 protected:
  static constexpr OtlpLimits kQuick{
      .waiting = 4, .batch = 1, .tries = 2, .first_wait = milliseconds(1)};

  OtlpSender& start(std::vector<PostAnswer> answers, OtlpLimits limits = kQuick) {
    played_.emplace(std::move(answers));
    Collector collector{.url = "https://me:pw@c:4318/v1/traces"};
    sender_.emplace(std::make_unique<PostToPlayed>(*played_), collector,
                    NamedTexts{{"service.name", "gw"}}, log_.log(), limits);
    sender_->start();
    return *sender_;
  }
  // Each has a span, and one for each attempt.
  void offer(std::size_t requests, int attempts = 0) {
    v1::RequestRecord record;
    record.set_path("/v1/completions");
    for (int i = 0; i < attempts; ++i) record.add_attempts();
    for (std::size_t i = 0; i < requests; ++i) {
      sender_->offer({{.id_high = 1, .id_low = 2, .span = 3}, "text_completion"},
                     record.SerializeAsString());
    }
  }

  test::LogCapture log_;
  std::optional<Played> played_;
  std::optional<OtlpSender> sender_;
};

TEST_F(OtlpSenderTest, SendsWhatWaitsTogetherInTheNameOfItsProcess) {
  OtlpSender& sender = start({{.status = 200}}, {.batch = 3, .gather = std::chrono::hours(1)});
  offer(3);
  ASSERT_TRUE(played_->gets(1));
  EXPECT_EQ(played_->requests(0), 3U);
  otlp::ExportTraceServiceRequest sent;
  ASSERT_TRUE(sent.ParseFromString(played_->bodies().at(0)));
  const auto& resource = sent.resource_spans(0).resource();
  EXPECT_EQ(resource.attributes(0).key(), "service.name");
  EXPECT_EQ(resource.attributes(0).value().string_value(), "gw");
  sender.stop();
  EXPECT_EQ(sender.counts().sent, 3U);
}

TEST_F(OtlpSenderTest, DropsAndCountsWhatComesWhileTooMuchWaits) {
  OtlpSender& sender = start({{.status = 200}});
  played_->hold(true);
  offer(1);
  ASSERT_TRUE(played_->gets(1));
  offer(6);
  EXPECT_EQ(sender.counts().queue_full, 2U);
  played_->hold(false);
  sender.stop();
  EXPECT_EQ(sender.counts().sent, 5U);
  EXPECT_EQ(sender.counts().collector, 0U);
}

TEST_F(OtlpSenderTest, BoundsTheBytesThatWait) {
  OtlpSender& sender = start({{.status = 200}}, {.bytes = 1});
  offer(1);
  EXPECT_EQ(sender.counts().queue_full, 1U);
}

TEST_F(OtlpSenderTest, SendsTheSameOnceMoreToACollectorThatMayTakeItThen) {
  OtlpSender& sender = start({{.status = 503}, {.status = 200}});
  offer(1);
  ASSERT_TRUE(played_->gets(2));
  sender.stop();
  EXPECT_EQ(played_->bodies().at(0), played_->bodies().at(1));
  EXPECT_EQ(sender.counts().sent, 1U);
}

TEST_F(OtlpSenderTest, GivesABatchUpThatIsRefusedOrTriedOftenEnoughAndTellsItOnce) {
  OtlpSender& sender = start({{.status = 400}, {.error = "no route to host"}});
  offer(1);
  ASSERT_TRUE(played_->gets(1));
  offer(1);
  ASSERT_TRUE(played_->gets(3));
  sender.stop();
  EXPECT_EQ(played_->bodies().size(), 3U);
  EXPECT_EQ(sender.counts().collector, 2U);
  EXPECT_EQ(sender.counts().sent, 0U);
  const std::string told = log_.text();
  EXPECT_NE(told.find("traces are not taken"), std::string::npos) << told;
  EXPECT_EQ(told.find("traces are not taken"), told.rfind("traces are not taken")) << told;
  EXPECT_NE(told.find("https://c:4318/v1/traces"), std::string::npos) << told;
  EXPECT_EQ(told.find("pw"), std::string::npos) << told;
}

TEST_F(OtlpSenderTest, TellsWhenTheCollectorTakesTracesAgain) {
  OtlpSender& sender = start({{.status = 400}, {.status = 200}});
  offer(1);
  ASSERT_TRUE(played_->gets(1));
  offer(1);
  ASSERT_TRUE(played_->gets(2));
  sender.stop();
  EXPECT_NE(log_.text().find("traces are taken again"), std::string::npos);
}

TEST_F(OtlpSenderTest, CountsWhatACollectorThrewAwayThoughItSaysThatAllIsWell) {
  otlp::ExportTraceServiceResponse told;
  told.mutable_partial_success()->set_rejected_spans(9);
  OtlpSender& sender = start({{.status = 200, .body = told.SerializeAsString()}});
  offer(2);
  ASSERT_TRUE(played_->gets(1));
  sender.stop();
  EXPECT_EQ(sender.counts().sent, 0U);
  EXPECT_EQ(sender.counts().collector, 2U);
}

TEST_F(OtlpSenderTest, CountsSpansThatWereThrownAwayAsTheirShareOfTheRequests) {
  const std::vector<std::pair<int, std::uint64_t>> all = {{1, 1}, {4, 1}, {6, 2}, {12, 4}};
  for (const auto& [rejected, lost] : all) {
    otlp::ExportTraceServiceResponse told;
    told.mutable_partial_success()->set_rejected_spans(rejected);
    OtlpSender& sender = start({{.status = 200, .body = told.SerializeAsString()}},
                               {.batch = 4, .gather = std::chrono::hours(1)});
    offer(4, 2);
    ASSERT_TRUE(played_->gets(1));
    sender.stop();
    EXPECT_EQ(sender.counts().collector, lost) << rejected;
    EXPECT_EQ(sender.counts().sent, 4 - lost) << rejected;
  }
}

TEST_F(OtlpSenderTest, SendsAtItsEndWhatWaitsAndTriesNothingTwice) {
  OtlpSender& sender = start({{.status = 200}, {.status = 503}},
                             {.batch = 2, .tries = 99, .gather = std::chrono::hours(1)});
  played_->hold(true);
  offer(2);
  ASSERT_TRUE(played_->gets(1));
  offer(3);
  sender.stop();
  EXPECT_EQ(played_->bodies().size(), 3U);
  EXPECT_EQ(sender.counts().sent, 2U);
  EXPECT_EQ(sender.counts().collector, 3U);
  offer(1);
  EXPECT_EQ(sender.counts().queue_full, 1U);
}

TEST_F(OtlpSenderTest, EndsInTimeThoughTheCollectorAnswersNothing) {
  OtlpSender& sender = start({{.error = "aborted"}}, {.batch = 1, .last = milliseconds(0)});
  played_->hold(true);
  offer(3);
  ASSERT_TRUE(played_->gets(1));
  sender.stop();
  EXPECT_EQ(played_->bodies().size(), 1U);
  EXPECT_EQ(sender.counts().collector, 3U);
}

TEST(Gzip, BeginsAsGzipDoesAndIsShorter) {
  const std::string packed = gzipped(std::string(10'000, 'a'));
  EXPECT_EQ(packed.substr(0, 2), "\x1f\x8b");
  EXPECT_LT(packed.size(), 200U);
}

}  // namespace
}  // namespace penstock::observe
