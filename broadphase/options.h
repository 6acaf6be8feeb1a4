// SPDX-License-Identifier: Zlib
/// @file
/// Declares the options of a finder (Backend, Options, DeviceOptions) and the report of a step
/// (Stats, kStages). C++17.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "export.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace lbvh {

/// Where pairs are found.
enum class Backend {
  automatic,  ///< the faster of the two: first the host's cores, then the GPU once it has proved
              ///< faster
  host,       ///< the host's cores
  cuda,       ///< the GPU; an error if none can be used
};

/// The structure in which a step searches for pairs. Both give the same pairs in the same order.
enum class Hierarchy {
  /// A tree of bounds over blocks of boxes. The boxes of a block are neighbours along a Hilbert
  /// curve. A block has 16 boxes on the host, for its vector instructions, and 32 on a GPU, for its
  /// warps.
  wide,
  /// A binary tree over single boxes, built in each step from Morton codes by a radix sort and one
  /// bottom-up pass. The search walks from each box along skip links. See Karras 2012, "Thinking
  /// Parallel", and Prokopenko and Lebrun-Grandie, "Revising Apetrei's bounding volume hierarchy
  /// construction algorithm to allow stackless traversal".
  binary,
};

/// Values of Options::instructions, which is deprecated.
enum class InstructionSet {
  automatic,  ///< the set that the environment variable GPULBVH_SIMD names, or the best that the
              ///< processor has
  baseline,   ///< SSE2 on x86-64; elsewhere, the compiler's target
  avx2,       ///< on x86-64
  avx512,     ///< on x86-64, with the subsets F, BW, DQ and VL
  neon,       ///< on every 64-bit ARM processor
};

/// Where arrays are stored.
enum class MemorySpace {
  host,    ///< the host's memory
  device,  ///< the GPU's memory
};

GPULBVH_BEGIN_OLD_NAMES  // used by functions that compilers generate

/// Options of a PairFinder.
struct Options {
  /// Where to find the pairs. The constructor of PairFinder throws if the backend is not available.
  Backend backend = Backend::automatic;

  /// Number of host threads; 0 means one for each core. The maximum is 64, or the number of cores
  /// if that is larger; a larger number means the maximum. The result does not depend on the number
  /// of threads.
  int threads = 0;

  /// A step fails if it finds more pairs than this, so that it cannot fill the machine's memory.
  /// The default of 2^28 pairs needs up to 7 GiB, and as much again in Bullet's pair cache.
  std::uint64_t maxPairs = std::uint64_t{1} << 28;

  /// Time each stage of steps on a GPU, and of steps with up to 256 boxes on the host. When this is
  /// off, only `totalMs` of these steps is known. The host always times larger steps. Timing is off
  /// by default, because it slows small steps down: a GPU waits for events, and the host reads the
  /// clock.
  bool stageTimes = false;

  /// The GPU's device number in CUDA. -1 means the current device of the thread that makes the
  /// finder.
  int device = -1;

  /// On a GPU: launch a repeated step as one CUDA graph. The graph is built again after the size of
  /// the scene has changed. When graphs are off, a step takes some microseconds longer.
  bool graphs = true;

  /// On a GPU: the maximum page-locked host memory for added and removed pairs, in MiB (2^20
  /// bytes). It is allocated as steps need it, about 16 to 32 bytes for each added or removed pair.
  /// Longer lists are copied through ordinary memory, which takes a second wait. The default holds
  /// 4,194,304 pairs in each list. Each list holds at least 1,024 pairs. PairFinder::pairs() can
  /// use the same amount again for its list, by default for up to 8,388,608 pairs. A longer list is
  /// copied to ordinary memory, which takes three to four times as long.
  std::size_t pinnedDeltaMiB = 256;

  /// The structure that is searched. `wide` is faster. `binary` searches for the pairs of all boxes
  /// in each step. It does not save work by keeping an order or earlier pairs.
  Hierarchy hierarchy = Hierarchy::wide;

  // Deprecated names of version 0.2, to be removed in 0.4.
  /// Ignored if it is `automatic`. The constructor throws if the processor does not have the
  /// instruction set.
  [[deprecated("set GPULBVH_SIMD in the environment")]] InstructionSet instructions =
      InstructionSet::automatic;
  /// Ignored if it is 16.
  [[deprecated("use pinnedDeltaMiB")]] std::size_t mappedMiB = 16;
  /// Ignored. A sorted order that is still useful is always kept.
  [[deprecated("has no effect")]] bool keepOrder = true;
};

/// Allocates a finder's memory on the GPU, in the order of a stream. Work that is queued on
/// `stream` after `allocate` may use the memory. `release` is called after the last such work was
/// queued, not after it has run. Both functions are called on the threads that call the finder. If
/// a CUDA error is pending there, they are called on another thread, for which the caller waits.
///
/// The stream may be the finder's own. The finder waits for it and destroys it in its destructor,
/// after the last release. A pool that keeps memory by stream must not use that stream afterwards.
struct DeviceAllocator {
  /// Null: the finder calls cudaMallocAsync and cudaFreeAsync, or what the device supports instead.
  /// @return memory aligned to 256 bytes; null makes the search throw std::runtime_error
  void* (*allocate)(std::size_t bytes, CUstream_st* stream, void* user) = nullptr;
  /// Null if and only if `allocate` is null. Must not throw.
  void (*release)(void* memory, std::size_t bytes, CUstream_st* stream, void* user) = nullptr;
  void* user = nullptr;  ///< passed to both functions
};

/// Options of a DevicePairFinder.
struct DeviceOptions {
  /// Initial capacity of the pair list; 0 means eight pairs per box.
  std::size_t initialPairCapacity = 0;

  /// The GPU's device number in CUDA. -1 means the current device of the thread that makes the
  /// finder.
  int device = -1;

  /// A search or a batch of queries stops beyond this many results. The reported count is then only
  /// a lower bound. Without a limit, a scene in which everything overlaps would occupy the device
  /// for seconds.
  std::uint64_t maxPairs = std::uint64_t{1} << 28;

  /// Where boxes and pairs are stored, and where the pairs are found. With MemorySpace::host all
  /// pointers are to host memory, streams must be null, and find() returns when it is done.
  /// Programs can thus be tested without a GPU. The pairs are the same.
  MemorySpace memory = MemorySpace::device;

  /// Number of host threads with MemorySpace::host, as in Options::threads. Must not be negative.
  int threads = 0;

  /// Allocates the memory on the GPU.
  DeviceAllocator allocator;

  /// On the GPU: query the location of each array in each call, and reject arrays that kernels
  /// cannot read. Such an array is in ordinary host memory that the device cannot read, or in
  /// page-locked host memory with a pointer that is not valid on the device. Memory of another
  /// device is rejected even if peer access is enabled. Turning the option off saves up to 16
  /// driver calls in each call of the finder. A wrong array then causes a fault on the device.
  bool validatesArrays = true;

  // Deprecated names of version 0.2, to be removed in 0.4.
  /// Ignored if it is 0.
  [[deprecated("use initialPairCapacity")]] std::size_t leastCapacity = 0;
  /// Backend::host means MemorySpace::host. Backend::automatic is an error.
  [[deprecated("use memory, a MemorySpace")]] Backend backend = Backend::cuda;
};

GPULBVH_END_OLD_NAMES

/// What the last step did, and how long each stage took, in milliseconds of wall-clock time.
struct StepStats {
  std::size_t objects = 0;   ///< boxes passed in
  std::size_t pairs = 0;     ///< overlapping pairs
  std::size_t added = 0;     ///< pairs that the previous step did not have
  std::size_t removed = 0;   ///< pairs that only the previous step had
  std::size_t searched = 0;  ///< boxes whose pairs were searched for; the others have hardly moved
  std::size_t oversizedBoxes = 0;  ///< infinite and giant boxes, which overlap nearly all others
  std::size_t nanBoxes = 0;        ///< boxes with a NaN: they overlap nothing
  std::size_t capacity = 0;        ///< pairs that fit without a second search
  std::size_t memoryBytes = 0;     ///< memory that the finder holds, not counting `boxes`
  int mortonBits = 0;              ///< 30, 42 or 63; 0 if the boxes were too few to be sorted

  double boundsMs = 0;     ///< the class of each box, and a grid over all boxes
  double codesMs = 0;      ///< a key for each box: its position along a curve
  double sortMs = 0;       ///< sort of the boxes along the curve
  double hierarchyMs = 0;  ///< blocks of boxes and bounds above them, or the binary tree
  double traversalMs = 0;  ///< search for pairs
  double pairSortMs = 0;   ///< sort of the pairs by their indices
  double deltaMs = 0;      ///< comparison with the previous pairs
  double totalMs = 0;      ///< the whole step
};

/// A stage of a step.
struct Stage {
  const char* name;       ///< its name in printStats() and in `replay --stages`
  double StepStats::*ms;  ///< the field with its milliseconds
};
/// The stages of a step, in order.
inline constexpr Stage kStages[] = {
    {"bounds", &StepStats::boundsMs},       {"codes", &StepStats::codesMs},
    {"sort", &StepStats::sortMs},           {"hierarchy", &StepStats::hierarchyMs},
    {"traversal", &StepStats::traversalMs}, {"pair sort", &StepStats::pairSortMs},
    {"delta", &StepStats::deltaMs},
};

/// Why a step ran on the host or on the GPU.
enum class SpaceReason {
  requested,    ///< Options::backend is `host` or `cuda`
  unavailable,  ///< no GPU can be used
  warmUp,       ///< on the host, while the GPU is prepared in the background
  faster,       ///< steps took less time where this step ran, or the two have not been compared yet
  failed,       ///< on the host, because the GPU has failed or found wrong pairs
};

GPULBVH_BEGIN_OLD_NAMES  // used by functions that compilers generate

/// What the last step did, and where it ran.
struct Stats : StepStats {
  std::string backend;  ///< where the last step ran: "host" or the GPU's name
  SpaceReason spaceReason = SpaceReason::requested;  ///< why it ran there
  std::string reason;                                ///< the reason in words
  Hierarchy hierarchy = Hierarchy::wide;             ///< the structure that was searched

  /// With Backend::automatic: the mean time of a step on the host in the last comparison. Host and
  /// GPU both ran the steps of that comparison. 0 before the first comparison.
  double hostMeanMs = 0;
  double gpuMeanMs = 0;      ///< the mean time of these steps on the GPU
  std::size_t switches = 0;  ///< with Backend::automatic: number of changes between host and GPU

  int threads = 0;  ///< host threads in use

  /// The instruction set of the host's inner loops: "avx512", "avx2", "neon" or "baseline".
  std::string instructions;

  // Deprecated names of version 0.2, to be removed in 0.4.
  /// Equal to hostMeanMs.
  [[deprecated("use hostMeanMs: it is a mean")]] double hostMedianMs = 0;
  /// Equal to gpuMeanMs.
  [[deprecated("use gpuMeanMs: it is a mean")]] double gpuMedianMs = 0;
};

GPULBVH_END_OLD_NAMES

/// Empty if `backend` is available in this build on this machine, else one line that says why not.
/// @param device as Options::device
GPULBVH_API std::string whyUnavailable(Backend backend, int device = -1);
/// Empty if this build and this processor have the instruction set, else one line that says why
/// not.
[[deprecated("use Stats::instructions, which names the set in use")]] GPULBVH_API std::string
whyUnavailable(InstructionSet instructions);

}  // namespace lbvh
