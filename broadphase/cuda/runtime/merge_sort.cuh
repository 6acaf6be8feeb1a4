// SPDX-License-Identifier: Zlib
// Runs CUB's merge sort so that each kernel starts after the previous one has ended. CUB requests
// programmatic dependent launch, which lets a kernel start before the writes of the previous one
// are visible. The kernels of CCCL 2.8 to 3.0.2 read the previous kernel's results before they wait
// for that kernel. Code compiled for compute capabilities below 9.0 never waits, but a newer GPU
// that runs the PTX of such code accepts the request.
#pragma once

#include <cub/version.cuh>

#include "broadphase/cuda/runtime/kernel_list.cuh"

// In CCCL 2.8 the launcher cannot be replaced, and from 3.4 on the dispatch is different. With
// these versions the caller uses the radix sort.
#define GPULBVH_CUB_MERGES (CUB_VERSION < 200800 || (CUB_VERSION >= 300000 && CUB_VERSION < 300400))

#if GPULBVH_CUB_MERGES
#include <cstddef>
#include <cstdint>
#include <cub/device/device_merge_sort.cuh>
#endif

namespace lbvh {

inline constexpr bool kCubMerges = GPULBVH_CUB_MERGES;

#if GPULBVH_CUB_MERGES && CUB_VERSION >= 300000

struct LaunchAfterTheLast : cub::detail::TripleChevronFactory {
  CUB_RUNTIME_FUNCTION auto operator()(dim3 grid, dim3 block, std::size_t shared,
                                       cudaStream_t stream, bool /*dependent*/ = false) const {
    return cub::detail::TripleChevronFactory::operator()(grid, block, shared, stream, false);
  }
};

/// Makes CUB's dispatch use our launcher. All other template parameters are kept.
template <class Dispatch>
struct Undependent;
template <template <class...> class Dispatch, class InKey, class InValue, class Key, class Value,
          class Offset, class Compare, class Policies, class Source, class Launcher, class... Rest>
struct Undependent<
    Dispatch<InKey, InValue, Key, Value, Offset, Compare, Policies, Source, Launcher, Rest...>> {
  using Type = Dispatch<InKey, InValue, Key, Value, Offset, Compare, Policies, Source,
                        LaunchAfterTheLast, Rest...>;
  using Kernels = Source;
};

/// A stable sort in place. Arguments and errors are as in cub::DeviceMergeSort::StableSortPairs.
template <class Key, class Value, class Compare>
cudaError_t mergeSortPairs(void* scratch, std::size_t& bytes, Key* keys, Value* values,
                           std::uint32_t n, Compare compare, cudaStream_t stream) {
  using Cubs = cub::DispatchMergeSort<Key*, Value*, Key*, Value*, std::uint32_t, Compare>;
  using Kernels = typename Undependent<Cubs>::Kernels;
  KernelList::add<Kernels::MergeSortBlockSortKernel()>();
  KernelList::add<Kernels::MergeSortPartitionKernel()>();
  KernelList::add<Kernels::MergeSortMergeKernel()>();
  return Undependent<Cubs>::Type::Dispatch(scratch, bytes, keys, values, keys, values, n, compare,
                                           stream);
}

#elif GPULBVH_CUB_MERGES

template <class Key, class Value, class Compare>
cudaError_t mergeSortPairs(void* scratch, std::size_t& bytes, Key* keys, Value* values,
                           std::uint32_t n, Compare compare, cudaStream_t stream) {
  return cub::DeviceMergeSort::StableSortPairs(scratch, bytes, keys, values, n, compare, stream);
}

#endif

}  // namespace lbvh
