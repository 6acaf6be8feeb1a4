// SPDX-License-Identifier: Zlib
// THE SEAM: what an execution space offers to the stages. This comment is the contract; the
// compiler checks only what a stage uses. Spaces: HostSpace (exec/host/space.h), CudaSpace
// (exec/cuda/space.cuh).
//
// A stage is a named struct of views with a call operator, marked LBVH_HD, that handles element i:
//
//   space.forEach(n, body)            body(i) for i in [0, n), in any order, in parallel
//                                     (kGrain of a body: how many elements are worth a thread)
//   space.append(n, body, out)        body(i, sink); sink.push(pair) appends to `out` in any order
//                                     and is false once more than out.limit pairs were pushed
//   space.reduce(n, body, &sum)       writes the sum of all body(i) by +=, which is associative and
//                                     exact, so that the order does not matter
//   space.sumBefore(counts)           exclusive scan in place with +=
//   space.sortByKey(keys, values, spareKeys, spareValues, shift, bits)
//                                     stable, by `bits` bits from bit `shift` on; result in keys,
//                                     values
//   space.timed(name, ms)             an object whose lifetime is added to `ms`; profilers show it
//   space.upload(view, buffer)        the view where the space can read it, perhaps padded (boxes
//                                     with NaN, others with zeros), so that its size seldom changes
//   space.wait()                      until all work is done; then the host may read HostBuffers
//
//   Space::Memory, space.memory()     the policy of its GrowBuffers and Scratch
//   Space::Buffer<T>, HostBuffer<T>   storage that only grows, uninitialised
//   Space::UploadBuffer<T>            what upload() remembers of an array between steps
//   Space::kKnowsCounts               its memory is the host's, which may read what a stage wrote
//                                     as soon as the call returns
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "broadphase/types.h"

namespace lbvh {

/// Where append() writes pairs, and how many there were. If *count exceeds `pairs.size`, only the
/// first ones were written.
struct PairOutput {
  View<Pair> pairs;
  std::uint64_t limit;  ///< stop early beyond this count
  std::uint64_t* count;
};

/// A space failed in the middle of a step. Another space can finish the step.
struct SpaceError : std::runtime_error {
  SpaceError(const std::string& what, bool sticky) : std::runtime_error(what), isSticky(sticky) {}
  bool isSticky;  ///< this space will not work again in this process
};

}  // namespace lbvh
