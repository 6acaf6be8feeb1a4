// Lists of pairs on the GPU, old ones against new ones, in every shape, and the chains of tiles
// between them. Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "broadphase/pipelines/cuda.cuh"
#include "broadphase/pipelines/cuda.h"
#include "broadphase/pipelines/host.h"
#include "cuda_fixture.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Pairs;
using test::Random;
using test::view;

template <class T>
std::vector<T> download(View<const T> there) {
  std::vector<T> host(there.size);
  if (!there.empty())
    cudaCheck(cudaMemcpy(host.data(), there.data, there.size * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

class CudaLists : public test::OnCuda {};

/// Pipelines on the GPU and on the host, which are told the same.
class Both {
 public:
  explicit Both(const Options& options = {})
      : gpu_(options), host_(makeHostPipeline(1, simdKernels())) {}

  void step(const Boxes& boxes, const std::vector<std::uint8_t>& removedObjects = {},
            View<const std::uint64_t> changed = {}) {
    StepStats stats;
    gpu_.step({view(boxes), {}, view(removedObjects), 1u << 24, changed}, stats);
    host_->step({view(boxes), {}, view(removedObjects), 1u << 24}, stats);
    expectTheSame();
  }

  /// As if the other space had done the step before.
  void setPreviousPairs(const Pairs& pairs) {
    gpu_.setPreviousPairs(view(pairs));
    host_->setPreviousPairs(view(pairs));
  }

  std::size_t added() const { return gpu_.added().size; }
  std::size_t removed() const { return gpu_.removed().size; }

 private:
  void expectTheSame() {
    ASSERT_EQ(test::toVector(gpu_.added()), test::toVector(host_->added()));
    ASSERT_EQ(test::toVector(gpu_.removed()), test::toVector(host_->removed()));
    ASSERT_EQ(download(gpu_.pairs()), test::toVector(host_->pairs()));
  }

  CudaPipeline gpu_;
  std::unique_ptr<Pipeline> host_;
};

Boxes apart(std::size_t n) {
  Boxes boxes;
  for (std::size_t i = 0; i < n; ++i)
    boxes.push_back(test::boxAt(3 * static_cast<float>(i), 0, 0, 1));
  return boxes;
}

Pairs listOf(std::uint32_t first, std::uint32_t begin, std::uint32_t end) {
  Pairs pairs;
  for (std::uint32_t second = begin; second < end; ++second) pairs.push_back({first, second});
  return pairs;
}

// The pairs alone do not tell how many boxes there were.
TEST_F(CudaLists, AnOldListMayReachBeyondAllBoxes) {
  for (const std::uint32_t end : {200u, 300u, 5000u, 140000u}) {
    SCOPED_TRACE(end);
    Both both;
    both.setPreviousPairs(listOf(0, 1, end));
    both.step(apart(10));
    EXPECT_EQ(both.removed(), end - 1);
  }
}

// Recordings hold the addresses of all buffers, of which each grows in its own time.
TEST_F(CudaLists, NoRecordingOutlivesItsMemory) {
  Both both;
  const Boxes few = apart(250), some = apart(8192), more = apart(8700);
  for (const Boxes* boxes : {&few, &some, &some, &some, &some, &some, &more, &some, &some, &some})
    ASSERT_NO_FATAL_FAILURE(both.step(*boxes));
}

}  // namespace
}  // namespace lbvh
