#include "tls/channel.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "tls/openssl.h"

namespace penstock::tls {

namespace {

// Renewed keys, warnings and the like: a client needs one or two, and each costs more than its
// bytes.
constexpr unsigned kMostOwnMessages = 64;

}  // namespace

// The BIO below OpenSSL: reads of a Channel's Wire, and writes to it.
struct Channel::WireMethods {
  static BIO* over(Wire& wire) {
    static BIO_METHOD* const kMethods = make();
    BIO* bio = BIO_new(kMethods);
    if (bio == nullptr) throw std::bad_alloc();
    BIO_set_data(bio, &wire);
    BIO_set_init(bio, 1);
    return bio;
  }

 private:
  static BIO_METHOD* make() {
    BIO_METHOD* methods = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    BIO_meth_set_read_ex(methods, &read);
    BIO_meth_set_write_ex(methods, &write);
    BIO_meth_set_ctrl(methods, &control);
    return methods;
  }
  static Wire& of(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, size_t most, size_t* taken) {
    Wire& wire = of(bio);
    BIO_clear_retry_flags(bio);
    *taken = std::min(most, wire.in.size());
    if (*taken == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(to, wire.in.data(), *taken);
    wire.in.remove_prefix(*taken);
    return 1;
  }
  static int write(BIO* bio, const char* from, size_t size, size_t* written) {
    *written = 0;
    try {
      of(bio).out->append(from, size);
    } catch (const std::bad_alloc&) {  // it must not pass through OpenSSL's frames
      return 0;
    }
    *written = size;
    return 1;
  }
  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }
};

// Whatever TLS is told on its own behalf after the handshake is counted, however it is mixed with
// data and cut into segments.
struct Channel::Messages {
  static void count_on(Channel& channel) {
    SSL_set_msg_callback(channel.ssl_, &note);
    SSL_set_msg_callback_arg(channel.ssl_, &channel);
  }

 private:
  static void note(int sent, int /*version*/, int kind, const void* /*bytes*/, size_t /*size*/,
                   ssl_st* /*ssl*/, void* channel) {
    const bool own = kind == SSL3_RT_HANDSHAKE || kind == SSL3_RT_ALERT;
    if (sent == 0 && own) ++static_cast<Channel*>(channel)->own_messages_;
  }
};

Channel::Channel(const Credentials& credentials) : ssl_(SSL_new(credentials.context())) {
  if (ssl_ == nullptr) throw std::bad_alloc();
  BIO* wire = WireMethods::over(wire_);
  SSL_set_bio(ssl_, wire, wire);
  SSL_set_accept_state(ssl_);
}

Channel::~Channel() { SSL_free(ssl_); }

Channel::Handshake Channel::shake_hands(std::string_view& in, std::string& out) {
  wire_ = {in, &out};
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  in = wire_.in;
  if (result == 1) {
    Messages::count_on(*this);
    return Handshake::kDone;
  }
  if (SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ) return Handshake::kMore;
  break_down(take_reason());
  return Handshake::kFailed;
}

std::string_view Channel::open(std::string_view in, std::span<char> plain, std::string& out) {
  wire_ = {in, &out};
  size_t opened = 0;
  while (state_ == State::kOpen && opened < plain.size()) {
    const auto room = plain.subspan(opened);
    const size_t answered = out.size();
    const unsigned counted = own_messages_;
    size_t bytes = 0;
    ERR_clear_error();
    const bool read = SSL_read_ex(ssl_, room.data(), room.size(), &bytes) == 1;
    opened += bytes;
    if (!read) after_a_read_of_nothing();
    count_refused(answered, counted);
    if (!read && wire_.in.empty()) break;
  }
  return {plain.data(), opened};
}

// Either no record is whole, or one said something of TLS's own.
void Channel::after_a_read_of_nothing() {
  switch (SSL_get_error(ssl_, 0)) {
    case SSL_ERROR_WANT_READ:
      return;
    case SSL_ERROR_ZERO_RETURN:
      state_ = State::kEnded;
      return;
    default:
      break_down(take_reason());
  }
}

// What OpenSSL turns down by an answer, without a look at what is in it, is no message that it
// tells of.
void Channel::count_refused(size_t answered_before, unsigned counted_before) {
  if (own_messages_ == counted_before && wire_.out->size() > answered_before) ++own_messages_;
  if (state_ == State::kOpen && own_messages_ > kMostOwnMessages) {
    break_down("too many messages of TLS's own");
  }
}

void Channel::break_down(std::string fault) {
  state_ = State::kBroken;
  fault_ = std::move(fault);
}

bool Channel::seal(std::string_view plain, std::string& out) {
  if (state_ == State::kBroken) return false;
  if (plain.empty()) return true;
  wire_ = {{}, &out};
  size_t sealed = 0;
  if (SSL_write_ex(ssl_, plain.data(), plain.size(), &sealed) == 1) return true;
  break_down(take_reason());
  return false;
}

void Channel::say_goodbye(std::string& out) {
  if (state_ == State::kBroken) return;
  wire_ = {{}, &out};
  if (SSL_shutdown(ssl_) < 0) ERR_clear_error();
}

}  // namespace penstock::tls
