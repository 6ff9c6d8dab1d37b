// What the clients of one I/O thread are to be sent while much comes for them at once. As long as a
// batch is open, what is written to them is kept; when it closes, all of it is sent, in the order
// in which it came. Making pieces and sending them need different code and memory: one after the
// other for all is cheaper than in turns for each. That thread only.
#pragma once

#include <boost/intrusive/list.hpp>

namespace penstock::runtime {

class SendBatch {
 public:
  // Whoever keeps something while a batch is open. It may go before the batch closes.
  class Sender : public boost::intrusive::list_base_hook<
                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    // Everything that was kept, now. Others may go or write meanwhile.
    virtual void send_kept() = 0;

   protected:
    ~Sender() = default;
  };

  SendBatch() = default;
  SendBatch(const SendBatch&) = delete;
  SendBatch& operator=(const SendBatch&) = delete;

  // A batch is open while one of these lives; one within another belongs to it.
  class Open {
   public:
    explicit Open(SendBatch& batch) : batch_(batch) { ++batch_.open_; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() {
      if (--batch_.open_ == 0) batch_.send_all();
    }

   private:
    SendBatch& batch_;
  };

  bool is_open() const { return open_ > 0; }
  // It is asked when the batch closes, once, however often it was added.
  void add(Sender& sender) {
    if (!sender.is_linked()) senders_.push_back(sender);
  }

 private:
  void send_all() {
    while (!senders_.empty()) {
      Sender& next = senders_.front();
      senders_.pop_front();
      next.send_kept();
    }
  }

  boost::intrusive::list<Sender, boost::intrusive::constant_time_size<false>> senders_;
  unsigned open_ = 0;
};

}  // namespace penstock::runtime
