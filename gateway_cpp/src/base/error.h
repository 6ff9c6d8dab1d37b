// What can go wrong on the data plane: which kind, whose fault, and whether another upstream may be
// tried. Kind decides status, OpenAI type and code by one table, so that a kind reads the same
// everywhere. Errors are values: they travel by return, never by throw.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::base {

// One row of the table in error.cc each.
enum class Kind : std::uint8_t {
  kInvalidJson,           // the body is not JSON, or not an object
  kMissingParameter,      // a required field is absent
  kInvalidType,           // a field has the wrong JSON type
  kInvalidValue,          // a field has the right type and a senseless value
  kBadRequest,            // the HTTP request itself: framing, header syntax
  kModelNotFound,         // no deployment or adapter of that name
  kAdapterUnknown,        // an alias names an adapter that is not to be had
  kUnsupportedEndpoint,   // the endpoint exists, the model cannot do it
  kPathNotFound,          // no such endpoint
  kMethodNotAllowed,      // the endpoint exists, the method does not
  kRequestTimeout,        // header or body came too slowly
  kBodyTooLarge,          // over GatewayConfig::body_limit_bytes
  kHeadersTooLarge,       // over the header limit
  kUnsupportedMediaType,  // not application/json
  kWrongHost,             // Host names another server
  kWrongOrigin,           // a web page that may not call
  kInvalidApiKey,         // no key, or none that is known or still good
  kKeyRevoked,            // the key was good, and was revoked with what it had under way
  kPermissionDenied,      // the tenant may not use that model or adapter
  kRateLimitExceeded,     // the tenant's own limit of a minute, or of streams
  kInsufficientQuota,     // the tenant has had its tokens of the day
  kTokenBudget,           // more tokens than the deployment takes
  kQueueDeadline,         // no place came free in time
  kShedLoad,              // replicas and queue have as much as they may be given
  kOverloaded,            // nothing ready, or the gateway itself is full
  kModelLoading,          // replicas are starting, none is ready yet
  kBudgetUsedUp,          // the deployment has had its money or tokens of the day
  kScaledToZero,          // the deployment has no replicas by its operator's will
  kDeploymentFailed,      // no replica comes, be it without an operator, or until the next try
  kEngineDead,            // the engine died or hung with the request on board
  kQuarantined,           // engines died under this very request
  kDraining,              // this gateway is going away
  kNoRoutes,              // no route snapshot has ever been heard of
  kUpstreamFailed,        // a replica broke, and no other could be tried
  kDeadlineExceeded,      // no first event, or nothing more, in time
  kClientSlow,            // the client does not take its answer: logs and metrics
  kClientGone,            // the client left: logs and metrics only, never on the wire
  kConfig,                // a flag is wrong: only at start
  kInternal,              // our own bug
};

// Who has to change something for the request to succeed.
enum class Fault : std::uint8_t { kClient, kUpstream, kGateway };

// What may be done about it before the client has seen a byte.
enum class Retry : std::uint8_t { kNever, kBeforeFirstToken };

// What a kind means unless the error says otherwise.
struct KindTraits {
  std::string_view name;  // snake_case, for logs
  unsigned status;        // HTTP status
  std::string_view type;  // OpenAI "type"
  std::string_view code;  // OpenAI "code"
  Fault fault;
  Retry retry;
  bool client_may_retry;  // x-should-retry: the same request may succeed later
};

const KindTraits& traits(Kind kind);

// A value: copy and move as you like.
struct Error {
  Kind kind = Kind::kInternal;
  Fault fault = Fault::kGateway;
  Retry retry = Retry::kNever;
  bool client_may_retry = false;  // what x-should-retry says
  unsigned status = 500;
  std::string type;
  std::string code;
  std::string param;        // the field at fault; empty: null on the wire
  std::string message;      // for a person: what was wrong, with the value, and what to do
  std::string drop_reason;  // why admission said no; empty: it did not
  bool quotes = false;      // its message may quote the request's body: nobody may keep it
  std::chrono::milliseconds retry_after{0};  // 0: not known
};

// An error of `kind` with everything but the message taken from the table.
Error make_error(Kind kind, std::string message, std::string param = {});

// `,"retry_after_ms":2000`, a member of the error as JSON: a stream has no headers left to say when
// to come again. Empty: it is not known.
std::string retry_member(const Error& error);

// Called by result::value() on an error, which is a bug: the data plane asks has_value() first.
[[noreturn]] void throw_exception_from_error(const Error& error,
                                             const boost::source_location& where);

template <class T>
using Result = boost::system::result<T, Error>;
// Of what yields nothing but its own success: what went wrong, or none.
using MaybeError = std::optional<Error>;

}  // namespace penstock::base
