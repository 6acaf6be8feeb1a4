// SPDX-License-Identifier: Zlib
#include <cstring>

#include "broadphase/host/parallel/tasks.h"
#include "worlds/space.h"

namespace worlds {
namespace {

class HostSpace final : public Space {
 public:
  explicit HostSpace(int threads) : tasks_(threads) {}

  std::string name() const override { return "the host"; }
  CUstream_st* stream() override { return nullptr; }
  int threads() const override { return tasks_.threads(); }

  void* allocate(std::size_t bytes) override {
    memory_.push_back(std::make_unique<std::max_align_t[]>(bytes / sizeof(std::max_align_t) + 1));
    return memory_.back().get();
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }

  void forEach(std::size_t n, const WriteBox& f) override { run(n, f); }
  void forEach(std::size_t n, const MoveBody& f) override { run(n, f); }

  void repeat(const std::function<void()>& step) override { step(); }
  void forget() override {}

 private:
  template <class F>
  void run(std::size_t n, const F& f) {
    tasks_.forRanges(n, 1024, [&f](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) f(static_cast<std::uint32_t>(i));
    });
  }

  lbvh::HostTasks tasks_;
  std::vector<std::unique_ptr<std::max_align_t[]>> memory_;
};

}  // namespace

std::unique_ptr<Space> makeHostSpace(int threads) {
  return std::make_unique<HostSpace>(threads > 0 ? threads : lbvh::HostTasks::machineThreads());
}

}  // namespace worlds
