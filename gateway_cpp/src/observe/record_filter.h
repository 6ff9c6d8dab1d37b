// Which records somebody asks for. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "observe/record_sink.h"
#include "penstock/v1/explain.pb.h"

namespace penstock::observe {

// Asked for at once; more are asked for by `before_us`.
inline constexpr std::size_t kMostListed = 1000;

// How many are asked for.
std::size_t limit_of(const v1::RequestFilter& filter);

// Whether the record can be one of them, for all that is told beside its bytes.
bool may_match(const v1::RequestFilter& filter, const RecordFacts& facts);
// Whether one that can be is one.
bool matches(const v1::RequestFilter& filter, const v1::RequestRecord& record);

// Who calls a request so. Its client says the id of its trace, too.
enum class NamedBy : std::uint8_t { kNobody, kClient, kUs };

// What somebody calls requests: our id, their clients', or that of a trace in 32 hex digits.
class RecordName {
 public:
  // The id outlives it.
  explicit RecordName(std::string_view id);

  // `record`: its bytes.
  NamedBy named_by(std::string_view record) const;

 private:
  const std::string_view id_;
  const std::string_view clients_;  // as records have one of clients
  const std::string trace_;         // 16 bytes; empty: it is none
};

}  // namespace penstock::observe
