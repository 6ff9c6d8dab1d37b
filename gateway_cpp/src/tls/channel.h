// TLS on one connection, without a socket: what came from the client goes in, what is to be sent to
// it comes out. Fed in parts of any size. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tls/credentials.h"

// OpenSSL's: its headers stay in this folder's sources.
struct ssl_st;

namespace penstock::tls {

class Channel {
 public:
  // How much a record that is not whole yet holds back at most.
  static constexpr size_t kMostHeld = 17UL * 1024;

  // Whether a client that begins so may mean TLS: its first byte is the kind of its first record.
  static bool may_begin(char first) { return first == '\x16'; }

  explicit Channel(const Credentials& credentials);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  enum class Handshake : uint8_t { kMore, kDone, kFailed };
  // One step of it, which may take as long as a signature. Takes its part of `in`, what is behind
  // it is for open(); appends what the client is to be sent to `out`, after a failure too.
  Handshake shake_hands(std::string_view& in, std::string& out);

  enum class State : uint8_t {
    kOpen,
    kEnded,   // the client has said goodbye
    kBroken,  // what it sent is no TLS, or too much of what TLS says on its own behalf
  };
  State state() const { return state_; }

  // Deciphers all that is whole now into `plain`, which has room for in.size() + kMostHeld bytes,
  // and returns what is filled of it. Appends what TLS itself has to answer to `out`.
  std::string_view open(std::string_view in, std::span<char> plain, std::string& out);

  // Appends `plain` to `out` as records. False: the channel is broken.
  bool seal(std::string_view plain, std::string& out);

  // Appends what tells the client that nothing was cut off.
  void say_goodbye(std::string& out);

  // Why a handshake failed or the channel is broken, for logs.
  const std::string& fault() const { return fault_; }

 private:
  // What OpenSSL reads from and writes to during a call.
  struct Wire {
    std::string_view in;
    std::string* out = nullptr;
  };
  struct WireMethods;
  struct Messages;

  void after_a_read_of_nothing();
  void count_refused(size_t answered_before, unsigned counted_before);
  void break_down(std::string fault);

  Wire wire_;
  ssl_st* const ssl_;
  State state_ = State::kOpen;
  unsigned own_messages_ = 0;  // of the client's TLS, since the handshake
  std::string fault_;
};

}  // namespace penstock::tls
