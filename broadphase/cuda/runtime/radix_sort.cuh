// SPDX-License-Identifier: Zlib
// Runs CUB's radix sort. The number of keys decides which of its kernels run. So all are listed by
// name, and can be loaded in advance (kernel_list.cuh).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/version.cuh>

#include "broadphase/cuda/runtime/kernel_list.cuh"

// CUB versions outside the range below name their kernels differently. For those versions,
// CudaSpace loads the kernels by sorting some keys.
#define GPULBVH_NAMES_RADIX_KERNELS (CUB_VERSION >= 300000 && CUB_VERSION < 300100)

namespace lbvh {

inline constexpr bool kNamesRadixKernels = GPULBVH_NAMES_RADIX_KERNELS;

template <class Key>
void listRadixKernels() {
#if GPULBVH_NAMES_RADIX_KERNELS
  using namespace cub::detail::radix_sort;
  using Value = std::uint32_t;
  using Offset = std::uint32_t;
  using Decomposer = cub::detail::identity_decomposer_t;
  using Policy =
      typename cub::DispatchRadixSort<cub::SortOrder::Ascending, Key, Value, Offset>::max_policy_t;
  constexpr auto kOrder = cub::SortOrder::Ascending;
  KernelList::add<
      DeviceRadixSortSingleTileKernel<Policy, kOrder, Key, Value, Offset, Decomposer>>();
  KernelList::add<DeviceRadixSortHistogramKernel<Policy, kOrder, Key, Offset, Decomposer>>();
  KernelList::add<DeviceRadixSortExclusiveSumKernel<Policy, Offset>>();
  KernelList::add<
      DeviceRadixSortOnesweepKernel<Policy, kOrder, Key, Value, Offset, int, int, Decomposer>>();
#endif
}

/// A stable sort by bits [begin, end) of the keys. Arguments and errors are as in
/// cub::DeviceRadixSort::SortPairs.
template <class Key>
cudaError_t radixSortPairs(void* scratch, std::size_t& bytes, const Key* keys, Key* sortedKeys,
                           const std::uint32_t* values, std::uint32_t* sortedValues,
                           std::uint32_t n, int begin, int end, cudaStream_t stream) {
  listRadixKernels<Key>();
  return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sortedKeys, values, sortedValues, n,
                                         begin, end, stream);
}

}  // namespace lbvh
