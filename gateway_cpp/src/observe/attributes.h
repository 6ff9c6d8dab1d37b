// Attributes of a span or an event, as OTLP has them. What is empty or 0 is left out: it would say
// what nobody knows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/v1/otlp.pb.h"

namespace penstock::observe {

class Attributes {
 public:
  using List = google::protobuf::RepeatedPtrField<otlp::KeyValue>;

  explicit Attributes(List* list) : list_(*list) {}

  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) add(key).set_string_value(std::string(value));
  }
  void number(std::string_view key, std::uint64_t value) {
    if (value > 0) add(key).set_int_value(static_cast<std::int64_t>(value));
  }
  void flag(std::string_view key, bool value) {
    if (value) add(key).set_bool_value(true);
  }
  void fraction(std::string_view key, double value) {
    if (value > 0) add(key).set_double_value(value);
  }
  // Of a duration in microseconds.
  void seconds(std::string_view key, std::uint64_t us) {
    constexpr double kMicro = 1e-6;
    fraction(key, static_cast<double>(us) * kMicro);
  }
  template <class Texts>
  void texts(std::string_view key, const Texts& values) {
    if (values.empty()) return;
    auto& array = *add(key).mutable_array_value();
    for (const auto& value : values) array.add_values()->set_string_value(value);
  }

 private:
  otlp::AnyValue& add(std::string_view key) {
    otlp::KeyValue& one = *list_.Add();
    one.set_key(std::string(key));
    return *one.mutable_value();
  }

  List& list_;
};

}  // namespace penstock::observe
