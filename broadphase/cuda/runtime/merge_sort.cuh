// SPDX-License-Identifier: Zlib
// CUB's merge sort, each kernel launched when the one before it has ended. CUB asks for
// programmatic dependent launch, which lets a kernel start while the writes of the one before are
// not yet visible: CCCL 2.8 to 3.0.2 read such writes before they wait, and code compiled for less
// than compute 9.0 has no waits at all, although a newer GPU that compiles its PTX takes the
// request.
#pragma once

#include <cub/version.cuh>

// CCCL 2.8 launches in place, and 3.4 has another dispatch: there the caller sorts by radix.
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

/// The dispatch with our launcher for CUB's, whatever its other parameters are.
template <class Dispatch>
struct Undependent;
template <template <class...> class Dispatch, class InKey, class InValue, class Key, class Value,
          class Offset, class Compare, class Policies, class Kernels, class Launcher, class... Rest>
struct Undependent<
    Dispatch<InKey, InValue, Key, Value, Offset, Compare, Policies, Kernels, Launcher, Rest...>> {
  using Type = Dispatch<InKey, InValue, Key, Value, Offset, Compare, Policies, Kernels,
                        LaunchAfterTheLast, Rest...>;
};

/// Stable, in place. Arguments and errors as cub::DeviceMergeSort::StableSortPairs.
template <class Key, class Value, class Compare>
cudaError_t mergeSortPairs(void* scratch, std::size_t& bytes, Key* keys, Value* values,
                           std::uint32_t n, Compare compare, cudaStream_t stream) {
  using Cubs = cub::DispatchMergeSort<Key*, Value*, Key*, Value*, std::uint32_t, Compare>;
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
