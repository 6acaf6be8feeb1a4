// SPDX-License-Identifier: Zlib
#include "worlds.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <stdexcept>

#include "broadphase/device_pair_finder.h"

namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& list) {
    if (list.empty()) return;
    check(cudaMalloc(&data_, list.size() * sizeof(T)));
    check(cudaMemcpy(data_, list.data(), list.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  const T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

class CudaRun final : public WorldsRun {
 public:
  explicit CudaRun(const WorldBoxes& scene)
      : boxes_(scene.boxes), worlds_(scene.worlds), request_(scene.request) {
    scene_ = lbvh::DeviceScene::of({boxes_.data(), scene.boxes.size()});
    scene_.worlds = worlds_.data();
    scene_.worldCount = scene.worldCount;
  }
  std::uint64_t step() override {
    lists_ = finder_.find(scene_, request_, nullptr);
    check(cudaStreamSynchronize(nullptr));
    lbvh::DeviceReport report{};
    check(cudaMemcpy(&report, lists_.report, sizeof report, cudaMemcpyDeviceToHost));
    return count_ = report.pairs;
  }
  PairHash found() override {
    std::vector<lbvh::Pair> pairs(std::min<std::size_t>(count_, lists_.pairs.size()));
    check(cudaMemcpy(pairs.data(), lists_.pairs.data(), pairs.size() * sizeof(lbvh::Pair),
                     cudaMemcpyDeviceToHost));
    PairHash hash;
    for (const lbvh::Pair pair : pairs) hash.add(pair);
    return hash;
  }

 private:
  OnDevice<lbvh::Aabb> boxes_;
  OnDevice<std::uint32_t> worlds_;
  lbvh::DeviceRequest request_;
  lbvh::DeviceScene scene_;
  lbvh::DevicePairFinder finder_;
  lbvh::DeviceLists lists_;  ///< lists of the last step
  std::uint64_t count_ = 0;  ///< number of pairs of the last step
};

}  // namespace

std::unique_ptr<WorldsRun> runOnCuda(const WorldBoxes& scene) {
  return std::make_unique<CudaRun>(scene);
}
