// THE SEAM: what an execution space offers to the stages. A contract to read, checked by use;
// no code. Spaces: HostSpace (host_space.h), CudaSpace (cuda_space.cuh).
//
// A stage is a named struct of views with a call operator, marked LBVH_HD, that handles element i:
//
//   space.forEach(n, body)            body(i) for i in [0, n), in any order, in parallel
//                                     (a body with a kGrain is worth a thread for so many elements)
//   space.append(n, body, out)        body(i, sink); sink.push(pair) appends to `out` in any order
//                                     and is false once more than out.limit pairs were pushed
//   space.reduce(n, body, &sum)       adds body(i) to `sum` with +=, associative and exact, so that
//                                     the result does not depend on the order
//   space.sumBefore(counts)           exclusive scan in place with +=
//   space.sortByKey(keys, values, spareKeys, spareValues, bits)
//                                     stable, by the low `bits` bits; result in keys, values
//   space.sortPairs(pairs, spare, idBits, found)
//                                     by (first, second); only the first *found are there; the
//                                     result is in the returned view, which is one of the two
//   space.timed(name, ms)             an object whose life time is added to `ms` and named in tools
//   space.upload(view, buffer)        the view where the space can read it
//   space.hostRoom(spare, own, n)     room for n elements that the host can read after wait()
//   space.abandonAndCopy(view, to)    after a failed step: forgets what was begun, copies, waits
//   space.wait(header)                all that was asked for is done; a copy of the header
//
//   Space::Buffer<T>, HostBuffer<T>   grow-only storage without initialisation
//   Space::UploadBuffer<T>            what upload() remembers of an array between steps
//   Space::kHasOwnSearch              a step's stages, but for the sort by key, are the space's
//   own:
//                                     space.search() (host_search.h). It then needs none of
//                                     sumBefore, sortPairs, hostRoom and kDeltaChunk.
//   Space::kDeltaChunk                pairs that one thread compares at a stretch
//   Space::kKnowsCounts               what a stage counted is in the header when the call returns,
//                                     and the next is launched for exactly that many; else it is
//                                     launched for an upper bound, and the bodies read the header
#pragma once

#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// Where append() puts its pairs, and how many there were: *count may exceed `pairs.size`, then
/// only the first ones were kept.
struct PairOutput {
  View<Pair> pairs;
  std::uint64_t limit;  ///< stop early beyond this count
  std::uint64_t* count;
};

}  // namespace lbvh
