// What was decided about requests, as whoever reads their records is told it.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "observe/record_sink.h"
#include "penstock/v1/explain.pb.h"

namespace penstock::proxy {

class KeptRecords final : public observe::RecordSink {
 public:
  void take(const observe::RecordFacts& /*facts*/, std::string_view bytes) override {
    v1::RequestRecord& record = records_.emplace_back();
    EXPECT_TRUE(record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    EXPECT_TRUE(record.GetReflection()->GetUnknownFields(record).empty());
    bytes_.push_back(bytes.size());
  }
  const v1::RequestRecord& last() const { return records_.back(); }
  size_t last_bytes() const { return bytes_.back(); }
  const std::vector<v1::RequestRecord>& all() const { return records_; }

 private:
  std::vector<v1::RequestRecord> records_;
  std::vector<size_t> bytes_;
};

}  // namespace penstock::proxy
