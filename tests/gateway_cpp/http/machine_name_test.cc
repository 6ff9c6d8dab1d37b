#include "http/machine_name.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <thread>

namespace penstock::http {
namespace {

// Whether it is called that within 20 s.
bool becomes(const MachineName& machine, std::string_view host) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!machine.is(host) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  return machine.is(host);
}

// Of this process.
auto threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(MachineName, IsItsOwnNameWithAndWithoutDomainAndItsFullName) {
  const MachineName box("box", [](const std::string& name) { return name + ".corp.example"; });
  EXPECT_TRUE(becomes(box, "Box.Corp.example"));
  EXPECT_TRUE(box.is("box"));
  for (const char* other : {"", "box.example", "corp.example", "x"}) {
    EXPECT_FALSE(box.is(other)) << other;
  }
  const MachineName full("box.corp.example", [](const std::string&) { return std::string(); });
  EXPECT_TRUE(full.is("box"));
  EXPECT_TRUE(full.is("box.corp.example"));
}

TEST(MachineName, IsThereAtOnceAndGoesAtOnceThoughNobodyKnowsTheFullName) {
  struct Talk {
    std::promise<void> begun;
    std::promise<void> answer;
  };
  const auto before = threads();
  const auto talk = std::make_shared<Talk>();  // the thread may hold it longer than the test
  {
    const MachineName box("box", [talk](const std::string&) {
      talk->begun.set_value();
      talk->answer.get_future().wait();
      return std::string("too.late");
    });
    talk->begun.get_future().wait();
    EXPECT_TRUE(box.is("box"));
    EXPECT_FALSE(box.is("too.late"));
  }
  talk->answer.set_value();
  // A process that ends beside a thread that does is none that sanitizers like.
  while (threads() > before) std::this_thread::yield();
}

TEST(MachineName, OfThisMachineIsFound) {
  const std::string own = own_machine_name();
  ASSERT_NE(own, "");
  const std::string full = full_machine_name(own);
  const MachineName machine(own, full_machine_name);
  EXPECT_TRUE(machine.is(own));
  EXPECT_TRUE(full.empty() || becomes(machine, full));
}

TEST(MachineName, OfANameThatNobodyKnowsIsEmpty) {
  EXPECT_EQ(full_machine_name("no such name"), "");
}

}  // namespace
}  // namespace penstock::http
