// All that a gateway has besides its threads for requests that are repeated for our own sake. Owned
// by main.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "admission/shadow_book.h"
#include "base/config.h"
#include "control_plane/head_channel.h"
#include "control_plane/shadow_client.h"
#include "runtime/body_budget.h"

namespace penstock::http {

// Which I/O thread asks what the comparer wants to know: each in its turn.
class AskingThreads {
 public:
  // Never waits, and outlives the questions.
  using OnQuestion = control_plane::ShadowClient::OnQuestion;

  // Before the first question.
  void add(OnQuestion ask) { threads_.push_back(std::move(ask)); }
  // The comparer's reader alone.
  void ask(v1::ShadowQuestion question) {
    if (!threads_.empty()) threads_[next_++ % threads_.size()](std::move(question));
  }

 private:
  std::vector<OnQuestion> threads_;
  size_t next_ = 0;
};

struct Shadows {
  // `config` outlives it. `instance`: tells this process from those before it.
  Shadows(const base::GatewayConfig& config, const std::string& instance)
      : control(config.control),
        kept(config.shadow_bytes),
        client(
            {config.id, instance},
            [&config](const std::string& address) {
              return control_plane::connect_to_head(address, config.cluster_token, config.head_ca);
            },
            book, [this](v1::ShadowQuestion question) { threads.ask(std::move(question)); }) {}

  // As routes name the comparer.
  void point_at(const std::string& told) {
    client.point_at(control_plane::find_comparer(told, control));
  }

  const std::string control;  // host:port of the head
  admission::ShadowBook book;
  runtime::BodyBudget kept;  // bodies and answers
  AskingThreads threads;
  control_plane::ShadowClient client;
};

}  // namespace penstock::http
