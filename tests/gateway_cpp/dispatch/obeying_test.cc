// Clients that do as they are told, against a dispatcher that has just begun: a deployment's whole
// admission, with a clock that jumps from event to event.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "believed_routes.h"
#include "dispatch/dispatcher.h"
#include "fixed_clock.h"
#include "routing/snapshots.h"

namespace penstock::dispatch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kPlaces = 4;
constexpr std::uint32_t kTokens = 10;
constexpr milliseconds kAsExpected(500);  // of so many tokens, before anybody has seen one

class Crowd {
 public:
  // With bodies of their own, and again as soon as they are answered; or all with the same, once.
  enum class Manners { kComeAgain, kAlikeAndOnce };

  Crowd(std::size_t clients, milliseconds service, Manners manners = Manners::kComeAgain)
      : service_(service), manners_(manners) {
    limits_.max_ongoing = kPlaces;
    limits_.max_queued = kPlaces;
    limits_.wait_budget = milliseconds(0);
    routes_.replace({.version = 1,
                     .deployments = {routing::deployment("mini", {}, limits_)},
                     .replicas = {routing::replica("r1", "mini")}});
    for (std::size_t i = 0; i < clients; ++i) {
      clients_.push_back(std::make_unique<Client>(*this));
      if (manners == Manners::kComeAgain) clients_.back()->body = std::to_string(i);
      clients_.back()->ask.body = clients_.back()->body;
      at(milliseconds(1), [this, i] { come(*clients_[i]); });
    }
  }

  // Until that time from the start.
  void run(milliseconds until) {
    const auto end = clock_.steady_now() + until;
    while (!events_.empty() && events_.begin()->first <= end) {
      auto next = events_.extract(events_.begin());
      clock_.advance(next.key() - clock_.steady_now());
      next.mapped()();
    }
  }

  // Of those that had been refused, the share that was let in.
  double came_in() const { return static_cast<double>(let_in_) / static_cast<double>(again_); }
  int again() const { return again_; }  // that had been refused
  int served() const { return served_; }

 private:
  struct Client final : public Waker {
    explicit Client(Crowd& all) : crowd(&all) {
      ask.estimate = {.prompt = 0, .completion = kTokens};
    }
    void wake() override {
      crowd->at(milliseconds(0), [this] { crowd->begin(*this); });
    }
    Crowd* crowd;
    std::string body;
    PlaceRequest ask;
    Turn turn;
    Place place;
    bool was_refused = false;
  };

  void at(milliseconds in, std::function<void()> what) {
    events_.emplace(clock_.steady_now() + in, std::move(what));
  }

  void come(Client& client) {
    const auto waker = [&client] {
      return std::shared_ptr<Waker>(std::shared_ptr<void>(), &client);
    };
    const auto outcome = routes_.of("mini").admit(client.turn, client.ask,
                                                  {.deployment = "mini", .limits = limits_}, waker);
    again_ += client.was_refused ? 1 : 0;
    let_in_ += client.was_refused && !outcome.refusal ? 1 : 0;
    client.was_refused = outcome.refusal.has_value();
    if (outcome.refusal) {
      at(outcome.refusal->retry_after, [this, &client] { come(client); });
    } else if (client.turn.has_place()) {
      begin(client);
    }
  }

  void begin(Client& client) {
    client.place = client.turn.take();
    at(service_, [this, &client] {
      ++served_;
      client.place.release();
      if (manners_ == Manners::kComeAgain) at(milliseconds(1), [this, &client] { come(client); });
    });
  }

  const milliseconds service_;
  const Manners manners_;
  test::FixedClock clock_;
  routing::Limits limits_;
  BelievedRoutes routes_{clock_};
  std::multimap<base::SteadyTime, std::function<void()>> events_;  // outlives whom it wakes
  std::vector<std::unique_ptr<Client>> clients_;
  int again_ = 0;
  int let_in_ = 0;
  int served_ = 0;
};

class FromAColdStart : public testing::TestWithParam<int> {};

// Where calls take far longer than was expected, those that were told before the first has ended
// come too early, once.
TEST_P(FromAColdStart, MostAreLetInWhenTheyComeAsTheyWereTold) {
  const milliseconds service = kAsExpected * GetParam() / 100;
  const double least = GetParam() <= 100 ? 0.9 : GetParam() <= 150 ? 0.8 : 0.6;
  for (const std::size_t clients : {20, 40, 80}) {
    Crowd crowd(clients, service);
    crowd.run(seconds(60));
    EXPECT_GE(crowd.came_in(), least) << clients << " clients, " << crowd.again() << " came again";
    EXPECT_GE(crowd.served(), 0.9 * kPlaces * (seconds(60) / service)) << "places stood empty";
  }
}

TEST(Obeying, LetsEachInOfManyThatSayTheSameAtOnce) {
  for (const std::size_t clients : {20, 40}) {
    Crowd crowd(clients, kAsExpected, Crowd::Manners::kAlikeAndOnce);
    crowd.run(seconds(60));
    EXPECT_EQ(crowd.came_in(), 1) << clients << " clients, " << crowd.again() << " came again";
    EXPECT_EQ(crowd.served(), static_cast<int>(clients));
  }
}

INSTANTIATE_TEST_SUITE_P(PerCentOfTheExpectedTime, FromAColdStart,
                         testing::Values(25, 50, 100, 150, 300));

}  // namespace
}  // namespace penstock::dispatch
