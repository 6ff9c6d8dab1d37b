// How the simulated engine reads JSON: fields by name, and what is wrong with them. Part of
// `read_request` and its helpers.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/v1/common.pb.h"

namespace penstock::replica::simulated {

namespace dom = simdjson::dom;

// Thrown while reading and caught in `read_request`: a body is wrong at one of twenty places.
struct BadRequest {
  v1::ErrorDetail error;
};

[[noreturn]] void refuse(std::string_view code, const std::string& param,
                         const std::string& message);
[[noreturn]] void refuse_type(const std::string& param, const std::string& expected,
                              dom::element found);

// The element as a T; none if it is something else.
template <class T>
std::optional<T> as(dom::element element) {
  T value{};
  if (element.get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

// None where it is null. Of a key that stands twice the last counts, as for the gateway and for
// Python's parser.
std::optional<dom::element> field(dom::object object, std::string_view name);

bool read_bool(dom::object object, const std::string& name);
std::optional<uint64_t> read_count(dom::object object, const std::string& name, uint64_t least,
                                   uint64_t most);
std::string_view read_text(dom::element value, const std::string& name);

}  // namespace penstock::replica::simulated
