// Unpacks a gzip text (RFC 1952) as it comes, no more at a time than asked for: what a few bytes
// unpack to is known only when they are. Several members are one text; whatever else follows a
// member is a fault. One for each body; no I/O.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;  // zlib's, which gunzip.cc alone knows

namespace penstock::http {

class Gunzip {
 public:
  // What one step unpacks at most.
  static constexpr size_t kStepBytes = 64UL * 1024;
  // What zlib holds of its own for one text: its window and its tables.
  static constexpr size_t kStateBytes = 48UL * 1024;

  // One step: appends what of `packed` unpacks to `out`, at most kStepBytes and at most to a
  // member's end, and returns how many bytes of `packed` it used.
  size_t step(std::string_view packed, std::string& out);
  // Another step unpacks something, even without more bytes.
  bool has_more() const { return has_more_; }

  // The text may end here: a member has ended, and no other has begun.
  bool whole() const { return members_ > 0 && !in_member_; }
  // What is wrong, for a person; empty: nothing. Then there is no further step.
  std::string_view fault() const { return fault_; }

 private:
  struct End {
    void operator()(z_stream_s* stream) const;
  };

  void begin();
  void note(int result);

  std::unique_ptr<z_stream_s, End> stream_;  // null before the first step
  std::string_view fault_;
  unsigned members_ = 0;  // that have ended
  bool in_member_ = false;
  bool has_more_ = false;
};

}  // namespace penstock::http
