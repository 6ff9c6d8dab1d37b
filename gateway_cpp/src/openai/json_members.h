// The members of a JSON object as raw text, of JSON that an engine wrote: read in one pass, and put
// together anew with other values. What is broken is passed over.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock::openai {

// Reads an object's members one after the other. The views are into its text.
class MemberReader {
 public:
  explicit MemberReader(std::string_view object);
  // False: there are no more, or what follows is no member.
  bool next();
  std::string_view key() const { return key_; }      // between its quotes, as written
  std::string_view value() const { return value_; }  // its JSON, without white space around it

 private:
  void skip_space();
  bool skip(char wanted);
  bool skip_string();
  bool skip_value();

  const std::string_view text_;
  std::size_t at_ = 0;
  std::string_view key_;
  std::string_view value_;
};

// A member as it shall be: `value` is JSON.
struct Member {
  std::string_view key;
  std::string value;
};

// The object with these members behind its own, less those of the same names.
std::string with_members(std::string_view object, std::span<const Member> members);

}  // namespace penstock::openai
