#include "admission/appointments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kBetween(100);

class AppointmentsTest : public testing::Test {
 protected:
  milliseconds send_away(std::string_view tenant, std::uint64_t request) {
    return appointments_.send_away(tenant, request, now_, seconds(1), kBetween);
  }

  base::SteadyTime now_{seconds(1000)};
  Appointments appointments_;
};

TEST_F(AppointmentsTest, AreOneAfterTheOtherNoFasterThanPlacesComeFree) {
  EXPECT_EQ(send_away("acme", 1), seconds(1));
  milliseconds last = seconds(1);
  for (std::uint64_t request = 2; request < 20; ++request) {
    const milliseconds next = send_away("acme", request);
    EXPECT_GE(next - last, kBetween);
    EXPECT_LE(next - last, 2 * kBetween);
    last = next;
  }
}

TEST_F(AppointmentsTest, KnowWhoComesWhenItWasTold) {
  const milliseconds in = send_away("acme", 1);
  EXPECT_FALSE(appointments_.is_due(1, now_ + in / 2)) << "too early";
  EXPECT_TRUE(appointments_.is_due(1, now_ + in));
  EXPECT_FALSE(appointments_.is_due(2, now_ + in)) << "a stranger";
  appointments_.keep(1);
  EXPECT_FALSE(appointments_.is_due(1, now_ + in));
  EXPECT_TRUE(appointments_.empty());
}

TEST_F(AppointmentsTest, KeepTheTimeOfOneThatComesTooEarly) {
  send_away("acme", 1);
  const milliseconds told = send_away("acme", 2);
  now_ += milliseconds(300);
  EXPECT_EQ(send_away("acme", 2), told - milliseconds(300));
}

TEST_F(AppointmentsTest, GiveOneThatComesSoonerThanAnybodyRetriesATimeOfItsOwn) {
  const milliseconds told = send_away("acme", 1);
  now_ += milliseconds(10);
  EXPECT_GT(send_away("acme", 1), told) << "another client with the same body";
  EXPECT_EQ(appointments_.due("acme", now_, now_ + seconds(10), 100), 2U);
  for (std::size_t i = 0; i < 2 * Appointments::kMostAlike; ++i) send_away("acme", 1);
  EXPECT_EQ(appointments_.due("acme", now_, now_ + seconds(60), 1000), Appointments::kMostAlike);
}

TEST(AppointmentFingerprint, TellsTenantsKeysAndBodiesApart) {
  const std::string longer(5000, 'x');
  const auto of = [](std::string_view tenant, std::string_view key, std::string_view body) {
    return Appointments::fingerprint(tenant, key, body);
  };
  EXPECT_EQ(of("acme", "k1", "hi"), of("acme", "k1", "hi"));
  EXPECT_NE(of("acme", "k1", "hi"), of("acme", "k2", "hi"));
  EXPECT_NE(of("acme", "k1", "hi"), of("other", "k1", "hi"));
  EXPECT_NE(of("acme", "k1", "hi"), of("acme", "k1", "ho"));
  EXPECT_NE(of("acme", "k1", longer + "1"), of("acme", "k1", longer + "2"));
  EXPECT_NE(of("acme", "k1", "1" + longer), of("acme", "k1", "2" + longer));
}

TEST_F(AppointmentsTest, GiveAnotherTimeToOneThatCameInVain) {
  now_ += send_away("acme", 1);
  EXPECT_EQ(send_away("acme", 1), seconds(1));
  EXPECT_EQ(appointments_.due("acme", now_, now_ + seconds(10), 100), 1U) << "not twice";
}

TEST_F(AppointmentsTest, CountThoseThatAreDueUntilATime) {
  for (std::uint64_t request = 0; request < 10; ++request) send_away("acme", request);
  EXPECT_EQ(appointments_.due("acme", now_, now_, 100), 0U);
  EXPECT_EQ(appointments_.due("acme", now_, now_ + seconds(1), 100), 1U);
  EXPECT_EQ(appointments_.due("acme", now_, now_ + seconds(10), 100), 10U);
  EXPECT_EQ(appointments_.due("acme", now_, now_ + seconds(10), 3), 3U);
  EXPECT_EQ(appointments_.due("other", now_, now_ + seconds(10), 100), 0U);
}

TEST_F(AppointmentsTest, LeaveAPlaceForALateOneForAWhileOnly) {
  const auto at = now_ + send_away("acme", 1);
  EXPECT_TRUE(appointments_.is_due(1, at + Appointments::kGrace));
  EXPECT_FALSE(appointments_.is_due(1, at + Appointments::kGrace + milliseconds(1)));
  EXPECT_TRUE(appointments_.empty());
}

TEST_F(AppointmentsTest, ForgetThoseThatAreMissedOfEachTenantAndKeepTheOthers) {
  std::vector<std::string> tenants;
  for (std::uint64_t i = 0; i < 100; ++i) {
    now_ += milliseconds(100);
    tenants.push_back("tenant " + std::to_string(i));
    EXPECT_EQ(send_away(tenants.back(), i), seconds(1));
  }
  EXPECT_FALSE(appointments_.is_due(0, now_));
  std::size_t kept = 0;
  for (const auto& tenant : tenants) {
    kept += appointments_.due(tenant, base::SteadyTime(), now_ + seconds(60), 10);
  }
  EXPECT_EQ(kept, 31U) << "a second and the grace are three of ten seconds";
  now_ += seconds(60);
  EXPECT_FALSE(appointments_.is_due(99, now_));
  EXPECT_TRUE(appointments_.empty());
}

TEST_F(AppointmentsTest, OfAFloodSendNoOtherTenantAwayForLonger) {
  for (std::uint64_t request = 0; request < 200; ++request) send_away("flood", request);
  EXPECT_EQ(send_away("calm", 1000), seconds(1));
  EXPECT_LE(send_away("calm", 1001), seconds(1) + 3 * kBetween) << "half of the places are its own";
}

TEST_F(AppointmentsTest, PromiseNothingBeyondAMinute) {
  for (std::uint64_t request = 0; request < 2000; ++request) {
    EXPECT_LE(send_away("acme", request), Appointments::kMost);
  }
  const auto kept = appointments_.due("acme", now_, now_ + seconds(100), 10'000);
  EXPECT_LT(kept, 600U);
  now_ += seconds(100);
  EXPECT_FALSE(appointments_.is_due(1, now_));
  EXPECT_TRUE(appointments_.empty());
}

}  // namespace
}  // namespace penstock::admission
