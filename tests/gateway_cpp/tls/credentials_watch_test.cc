#include "tls/credentials_watch.h"

#include <gtest/gtest.h>

#include <optional>

#include "fixed_clock.h"
#include "log_capture.h"
#include "tls/made_certificate.h"

namespace penstock::tls {
namespace {

using test::made_certificate;

class CredentialsWatchTest : public testing::Test {
 protected:
  CredentialsWatchTest() {
    clock_.advance(std::chrono::system_clock::now() - clock_.wall_now());
    watch_.emplace(files_.files(), table_, clock_, log_.log());
  }

  std::string names() const { return table_.current()->facts().names; }
  void look(int times = 1) {
    for (; times > 0; --times) {
      clock_.advance(CredentialsWatch::kLookEvery);
      watch_->look();
    }
  }

  test::FixedClock clock_;
  test::LogCapture log_;
  test::CertificateFiles files_{made_certificate("first")};
  CredentialsTable table_{*Credentials::load(files_.files())};
  std::optional<CredentialsWatch> watch_;
};

TEST_F(CredentialsWatchTest, TakesChangedFilesOnceTheyStandStill) {
  log_.text();
  look(5);
  EXPECT_EQ(log_.text(), "") << "nothing has changed";
  const auto next = made_certificate("second");
  files_.write_certificate(next.certificate);
  look();
  files_.write_key(next.key);
  look();
  EXPECT_EQ(names(), "first, 127.0.0.1");
  EXPECT_EQ(log_.text(), "") << "half a change is none";
  look();
  EXPECT_EQ(names(), "second, 127.0.0.1");
  EXPECT_NE(log_.text().find("\"names\":\"second, 127.0.0.1\""), std::string::npos);
}

TEST_F(CredentialsWatchTest, KeepsTheOldOnesWhereTheNewAreNoGoodAndSaysSoOnce) {
  log_.text();
  files_.write_key(made_certificate("second").key);
  look(2);
  EXPECT_NE(log_.text().find("is not the key of the certificate"), std::string::npos);
  look(5);
  EXPECT_EQ(log_.text(), "");
  EXPECT_EQ(names(), "first, 127.0.0.1");
  files_.write(made_certificate("third"));
  look(2);
  EXPECT_EQ(names(), "third, 127.0.0.1");
}

TEST_F(CredentialsWatchTest, KeepsTheOldOnesWhereTheFilesAreGone) {
  ::unlink(files_.files().certificate.c_str());
  look(3);
  EXPECT_EQ(names(), "first, 127.0.0.1");
}

TEST_F(CredentialsWatchTest, ReloadsAtOnceWhenTold) {
  files_.write(made_certificate("second"));
  watch_->reload();
  EXPECT_EQ(names(), "second, 127.0.0.1");
  log_.text();
  look(3);
  EXPECT_EQ(log_.text(), "") << "they are known already";
}

TEST_F(CredentialsWatchTest, MakesThemAnewOnceADay) {
  const auto first = table_.current();
  clock_.advance(CredentialsWatch::kTicketKeyLife);
  look();
  EXPECT_NE(table_.current(), first);
  EXPECT_EQ(names(), "first, 127.0.0.1");
}

TEST_F(CredentialsWatchTest, WarnsOfACertificateThatHasEnded) {
  EXPECT_EQ(log_.text().find("its time is not now"), std::string::npos);
  files_.write(made_certificate("late", -1));
  watch_->reload();
  EXPECT_NE(log_.text().find("its time is not now"), std::string::npos);
}

}  // namespace
}  // namespace penstock::tls
