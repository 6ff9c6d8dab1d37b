// Requests as a busy deployment sees them: bursts, heavy tails, tenants of many sizes, and prompts
// of which 72 % have come before: the text of one of many templates, then the user's own, then what
// is new each time. The same seed gives the same requests.
#pragma once

#include <cstdint>
#include <vector>

#include "routing/hashing.h"

namespace penstock::simulation {

struct Request {
  double arrives = 0;  // seconds
  std::uint32_t tenant = 0;
  std::uint64_t session = 0;
  std::vector<std::uint64_t> blocks = {};  // chained hashes of the prompt's blocks
  std::size_t shared_blocks = 0;           // of these, how many have come before
  std::uint32_t completion_tokens = 0;
};

constexpr std::uint32_t kBlockTokens = 64;

// Draws with probabilities that fall as 1/rank.
class Zipf {
 public:
  explicit Zipf(std::size_t count);
  std::size_t draw(routing::Random& random) const;

 private:
  std::vector<double> sums_;
};

class Traffic {
 public:
  // `rate`: requests a second on average.
  Traffic(double rate, std::uint64_t seed);
  Request next();

 private:
  void pass_to_next_arrival();
  void write_prompt(Request& request, std::size_t user);

  routing::Random random_;
  double rate_;
  double now_ = 0;
  double phase_ends_ = 0;
  bool bursting_ = true;
  std::uint64_t requests_ = 0;
  Zipf tenants_;
  Zipf templates_;
  std::vector<bool> seen_templates_;
  std::vector<bool> seen_users_;
};

}  // namespace penstock::simulation
