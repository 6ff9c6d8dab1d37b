// Tokens of a request before anybody has counted them: from its bytes and what it asks for, learnt
// for each deployment from what its replicas report. Not for several threads at once.
//
// A prompt is taken to have as many tokens for each byte of its body as those before it had, the
// newest counting most. An answer is taken to be as long as answers are, or the share of
// `max_tokens` that answers use, whichever has told truer so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace penstock::admission {

struct TokenEstimate {
  std::uint32_t prompt = 0;
  std::uint32_t completion = 0;  // of all choices together
  std::uint32_t choices = 1;
  std::uint32_t asked = 0;  // max_tokens of all choices together; 0: the request says nothing

  std::uint64_t tokens() const { return std::uint64_t{prompt} + completion; }
  // In the unit of queue and wait model. A token that is generated takes an engine longer than one
  // that is read: four times, as it is commonly priced.
  std::uint64_t work() const { return work_of(prompt, completion); }
  static std::uint64_t work_of(std::uint64_t prompt, std::uint64_t completion) {
    return prompt + 4 * completion;
  }
};

class TokenEstimator {
 public:
  TokenEstimate estimate(std::size_t body_bytes, std::optional<std::uint64_t> max_tokens,
                         std::uint64_t choices) const;
  // A count that the true one is almost never below, for refusing a prompt as too long; 0 until
  // enough was learnt. Deployments whose bodies hold images get low ones: their bytes say little.
  std::uint32_t least_prompt(std::size_t body_bytes) const;
  void learn(std::size_t body_bytes, std::uint32_t prompt_tokens, std::uint32_t completion_tokens,
             const TokenEstimate& told);

 private:
  // A mean in which each sample counts a 32nd less than the one after it.
  struct Mean {
    double sum = 0;
    double weight = 0;
    void add(double value, double of = 1);
    double value_or(double other) const { return weight > 0 ? sum / weight : other; }
  };

  double length() const;  // of one choice
  double share() const;   // of max_tokens

  Mean tokens_a_byte_;
  Mean length_;
  Mean share_;
  Mean length_error_;  // where max_tokens was given
  Mean share_error_;
  double least_a_byte_ = 0;
  std::uint32_t learnt_ = 0;
};

}  // namespace penstock::admission
