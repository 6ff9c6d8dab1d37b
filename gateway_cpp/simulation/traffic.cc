#include "traffic.h"

#include <algorithm>
#include <cmath>

namespace penstock::simulation {
namespace {

constexpr std::size_t kTenants = 20;
constexpr std::size_t kTemplates = 4000;
constexpr std::size_t kUsers = 20'000;
// A burst is so many times the load between bursts; both last so many seconds on average.
constexpr double kBurst = 2.0;
constexpr double kBurstSeconds = 2;
constexpr double kCalmSeconds = 8;

// Above 0, up to 1.
double uniform(routing::Random& random) {
  return static_cast<double>((random.next() >> 11U) + 1) * 0x1p-53;
}

// Heavy-tailed, from `least` to `most`.
double pareto(routing::Random& random, double least, double most) {
  constexpr double kShape = 1.5;
  return std::min(most, least / std::pow(uniform(random), 1 / kShape));
}

}  // namespace

Zipf::Zipf(std::size_t count) {
  double sum = 0;
  for (std::size_t rank = 1; rank <= count; ++rank) {
    sums_.push_back(sum += 1 / static_cast<double>(rank));
  }
}

std::size_t Zipf::draw(routing::Random& random) const {
  const double at = static_cast<double>(random.next() >> 11U) * 0x1p-53 * sums_.back();
  const auto found = std::ranges::upper_bound(sums_, at);
  return std::min(static_cast<std::size_t>(found - sums_.begin()), sums_.size() - 1);
}

Traffic::Traffic(double rate, std::uint64_t seed)
    : random_(seed),
      rate_(rate * (kBurstSeconds + kCalmSeconds) / (kBurst * kBurstSeconds + kCalmSeconds)),
      tenants_(kTenants),
      templates_(kTemplates),
      seen_templates_(kTemplates),
      seen_users_(kUsers) {}

void Traffic::pass_to_next_arrival() {
  for (;;) {
    const double gap = -std::log(uniform(random_)) / (rate_ * (bursting_ ? kBurst : 1));
    if (now_ + gap < phase_ends_) {
      now_ += gap;
      return;
    }
    now_ = phase_ends_;  // without memory: drawing anew is as good
    bursting_ = !bursting_;
    phase_ends_ += -std::log(uniform(random_)) * (bursting_ ? kBurstSeconds : kCalmSeconds);
  }
}

void Traffic::write_prompt(Request& request, std::size_t user) {
  std::uint64_t hash = 0;
  // Blocks of a text, which its name and its length stand for.
  const auto write = [&](std::uint64_t name, double length) {
    for (double i = 0; i < length; ++i) {
      request.blocks.push_back(hash = routing::mix(hash * 31 + name));
    }
  };
  routing::Random of_user(user + 1);  // a user keeps to one template
  const std::size_t which = templates_.draw(of_user);
  routing::Random of_template(which + (1U << 30U));
  write(which + 1, pareto(of_template, 19, 190));
  if (seen_templates_[which]) request.shared_blocks = request.blocks.size();
  write(kTemplates + user + 1, pareto(of_user, 3, 30));
  if (seen_users_[user]) request.shared_blocks = request.blocks.size();
  write((++requests_ << 40U) + user, pareto(random_, 7, 70));
  seen_templates_[which] = seen_users_[user] = true;
}

Request Traffic::next() {
  pass_to_next_arrival();
  const std::size_t user = random_.below(kUsers);
  Request request{.arrives = now_,
                  .tenant = static_cast<std::uint32_t>(tenants_.draw(random_)),
                  .session = routing::mix(user + 1)};
  write_prompt(request, user);
  request.completion_tokens = static_cast<std::uint32_t>(pareto(random_, 64, 2048));
  return request;
}

}  // namespace penstock::simulation
