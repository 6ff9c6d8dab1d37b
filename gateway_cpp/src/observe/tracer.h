// Has those records sent that are to become traces. Owned by main.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "observe/otlp_sender.h"
#include "observe/record_sink.h"
#include "observe/trace_rule.h"

namespace penstock::observe {

class Tracer final : public RecordSink {
 public:
  // Without a collector nothing is sent, and no thread started.
  Tracer(TraceRule rule, std::unique_ptr<OtlpSender> sender)
      : rule_(rule), sender_(std::move(sender)) {
    rule_.collects = sender_ != nullptr;
  }

  const TraceRule& rule() const { return rule_; }
  void start() {
    if (sender_) sender_->start();
  }
  void stop() {
    if (sender_) sender_->stop();
  }
  void take(const RecordFacts& facts, std::string_view bytes) override {
    if (is_traced(rule_, facts)) sender_->offer({facts.trace, facts.operation}, std::string(bytes));
  }
  TraceCounts counts() const { return sender_ ? sender_->counts() : TraceCounts(); }

 private:
  TraceRule rule_;
  const std::unique_ptr<OtlpSender> sender_;
};

// To the collector that the process's environment names, in the name of that gateway; what is wrong
// with its variables is logged, and nothing is sent.
std::unique_ptr<OtlpSender> make_sender(const Variables& variables, const std::string& gateway_id,
                                        const std::string& node, base::Log& log);

}  // namespace penstock::observe
