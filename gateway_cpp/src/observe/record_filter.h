// Which records somebody asks for. Pure.
#pragma once

#include <cstddef>
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

// Whether it is what the request of those bytes is called, by us or by its client.
bool is_called(std::string_view record, std::string_view id);

}  // namespace penstock::observe
