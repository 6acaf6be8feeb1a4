// THE SEAM: what an execution space offers to stages that run on any. A contract to read, checked
// by use; no code. Spaces: HostSpace (exec/host/space.h), CudaSpace (exec/cuda/space.cuh).
//
// A stage is a named struct of views with a call operator, marked LBVH_HD, that handles element i:
//
//   space.forEach(n, body)            body(i) for i in [0, n), in any order, in parallel
//                                     (a body with a kGrain is worth a thread for so many elements)
//   space.append(n, body, out)        body(i, sink); sink.push(pair) appends to `out` in any order
//                                     and is false once more than out.limit pairs were pushed
//   space.reduce(n, body, &sum)       writes the sum of all body(i) by +=, which is associative and
//                                     exact, so that the order does not matter
//   space.sumBefore(counts)           exclusive scan in place with +=
//   space.sortByKey(keys, values, spareKeys, spareValues, bits)
//                                     stable, by the low `bits` bits; result in keys, values
//   space.timed(name, ms)             an object whose life time is added to `ms` and named in tools
//   space.upload(view, buffer)        the view where the space can read it; perhaps longer by
//                                     padding (boxes: NaN, others: zeros), so that it seldom
//                                     changes
//   space.wait()                      all that was asked for is done; the host may read HostBuffers
//
//   Space::Buffer<T>, HostBuffer<T>   grow-only storage without initialisation
//   Space::UploadBuffer<T>            what upload() remembers of an array between steps
//   Space::kKnowsCounts               its memory is the host's: what a stage wrote is there to read
//                                     when the call returns
#pragma once

#include <array>
#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// Addresses and sizes that tell one sequence of launches from another.
using LaunchKey = std::array<std::uintptr_t, 26>;

/// Where append() puts its pairs, and how many there were: *count may exceed `pairs.size`, then
/// only the first ones were kept.
struct PairOutput {
  View<Pair> pairs;
  std::uint64_t limit;  ///< stop early beyond this count
  std::uint64_t* count;
};

}  // namespace lbvh
