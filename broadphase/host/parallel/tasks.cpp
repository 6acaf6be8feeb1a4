// SPDX-License-Identifier: Zlib
#include "broadphase/host/parallel/tasks.h"

#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace lbvh {

struct HostTasks::Arena {
  explicit Arena(int threads) : arena(threads) {}
  tbb::task_arena arena;
};

// oneTBB returns 0 if the system does not report its number of processors, as in some containers.
int HostTasks::machineThreads() { return std::max(1, tbb::info::default_concurrency()); }

HostTasks::HostTasks(int threads) : threads_(threads) {
  if (threads_ == 1) return;
  // More threads than the machine has would only make oneTBB print a warning.
  arena_ = std::make_unique<Arena>(std::min(threads_, machineThreads()));
}

HostTasks::~HostTasks() = default;

void HostTasks::run(std::size_t n, std::size_t grain, RangeCall call, const void* task) {
  arena_->arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, n, grain),
                      [&](const tbb::blocked_range<std::size_t>& range) {
                        call(task, range.begin(), range.end());
                      });
  });
}

}  // namespace lbvh
