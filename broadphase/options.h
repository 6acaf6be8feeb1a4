// SPDX-License-Identifier: Zlib
/// @file
/// What a caller chooses (Backend, Options, DeviceOptions) and what a step tells (Stats, kStages).
/// C++17.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "export.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace lbvh {

/// Where pairs are found.
enum class Backend {
  automatic,  ///< whichever is faster: the host's cores first, the GPU once it has shown that it is
  host,       ///< the host's cores
  cuda,       ///< the GPU; an error where there is none
};

/// What the host's inner loops are compiled for. Results do not depend on it.
enum class InstructionSet {
  automatic,  ///< the environment variable GPULBVH_SIMD, or the best that the processor has
  baseline,   ///< SSE2 on x86-64, else what the compiler was told
  avx2,       ///< of x86-64
  avx512,     ///< of x86-64, with the subsets F, BW, DQ and VL
  neon,       ///< of every 64-bit ARM processor
};

/// What a finder is made with.
struct Options {
  /// Where to find the pairs. An error where it cannot be had.
  Backend backend = Backend::automatic;

  /// Host threads; 0 = all cores. More than 64 count as 64, or as all cores if those are more. The
  /// result does not depend on it.
  int threads = 0;

  /// Of the host's inner loops. An error where the processor does not have it.
  InstructionSet instructions = InstructionSet::automatic;

  /// A step that finds more pairs than this fails instead of filling the machine's memory.
  /// The default, 2^28 pairs, needs up to 7 GiB, and Bullet's cache as much again.
  std::uint64_t maxPairs = std::uint64_t{1} << 28;

  /// On a GPU, and in steps of up to 256 boxes on the host: time each stage. Without it only
  /// `totalMs` is known there. It is off because the times would take a large part of a small
  /// scene's: of a GPU's by waiting for events, of the host's by reading the clock.
  bool stageTimes = false;

  /// The GPU, by CUDA's number. -1: the calling thread's current one when the finder is made.
  int device = -1;

  /// On a GPU: launch repeated steps as one CUDA graph, recorded when a scene has changed its size.
  /// Off: no stream is ever captured, and a step costs some microseconds more. Turn it off if
  /// another thread of the program calls cudaDeviceSynchronize: while a recording is open, that
  /// call gets an error from CUDA (and the step runs unrecorded).
  bool graphs = true;

  /// On a GPU: most page-locked memory of the host for added and removed pairs, in MiB (2^20
  /// bytes). Lists that are longer are copied through ordinary memory, which takes a second wait.
  /// The default has room for 262,144 pairs in each list, which is more than usually change in a
  /// step with millions of pairs. At least 32 KiB are taken.
  std::size_t mappedMiB = 16;

  /// On a GPU: keep the order in which boxes are searched over steps, as long as it is of use. Off:
  /// sort them in each step, to see what that costs. The pairs are the same.
  bool keepOrder = true;
};

/// Where a finder's memory on the GPU comes from. What `allocate` returns may be used by work that
/// is asked of `stream` from then on, and `release` is called when the last such work was asked
/// for. Both are called on the threads that call the finder.
struct DeviceAllocator {
  /// Null: cudaMallocAsync and cudaFreeAsync, or what the device has instead.
  /// @return aligned to 256 bytes; null: the search throws std::runtime_error
  void* (*allocate)(std::size_t bytes, CUstream_st* stream, void* user) = nullptr;
  /// Not null if `allocate` is not. Must not throw.
  void (*release)(void* memory, std::size_t bytes, CUstream_st* stream, void* user) = nullptr;
  void* user = nullptr;  ///< handed to both
};

/// What a DevicePairFinder is made with.
struct DeviceOptions {
  /// Pairs that fit from the start; 0: eight a box.
  std::size_t leastCapacity = 0;

  /// The GPU, by CUDA's number. -1: the calling thread's current one when the finder is made.
  int device = -1;

  /// A search stops when it has found more, and so does a batch of queries. Then the count exceeds
  /// it, and says no more than that: so that a scene in which everything overlaps cannot keep the
  /// device for seconds.
  std::uint64_t maxPairs = std::uint64_t{1} << 28;

  /// Where boxes and pairs lie. With Backend::host all pointers are into the host's memory, streams
  /// are null, and find() returns when it is done: for programs that are tested without a GPU. The
  /// pairs are the same. Backend::automatic is an error, for nobody could tell where they lie.
  Backend backend = Backend::cuda;

  /// On the host, as Options::threads. Not negative.
  int threads = 0;

  /// On the GPU.
  DeviceAllocator allocator;
};

/// What the last step did, and how long each stage took (wall clock, milliseconds).
struct StepStats {
  std::size_t objects = 0;         ///< boxes handed in
  std::size_t pairs = 0;           ///< overlapping pairs
  std::size_t added = 0;           ///< pairs that the step before did not have
  std::size_t removed = 0;         ///< pairs that only the step before had
  std::size_t searched = 0;        ///< boxes whose pairs were searched for; the others rested
  std::size_t oversizedBoxes = 0;  ///< infinite and giant boxes, which meet nearly all others
  std::size_t nanBoxes = 0;        ///< boxes with a NaN: they overlap nothing
  std::size_t capacity = 0;        ///< pairs that fit without growing
  std::size_t memoryBytes = 0;     ///< held by the finder, boxes not included
  int mortonBits = 0;              ///< 30, 42 or 63; 0: few boxes, in no order

  double boundsMs = 0;     ///< what class each box is of, and a grid over all
  double codesMs = 0;      ///< a key for each box: its place along a curve
  double sortMs = 0;       ///< of boxes, along the curve
  double hierarchyMs = 0;  ///< blocks of boxes, and bounds above them
  double traversalMs = 0;  ///< the search for pairs, block by block
  double pairSortMs = 0;   ///< of pairs, by their indices
  double deltaMs = 0;      ///< which pairs were added and removed
  double totalMs = 0;      ///< of the whole step
};

/// A stage of a step.
struct Stage {
  const char* name;       ///< as printStats() and `replay --stages` print it
  double StepStats::*ms;  ///< the field of its milliseconds
};
/// The stages of a step in their order.
inline constexpr Stage kStages[] = {
    {"bounds", &StepStats::boundsMs},       {"codes", &StepStats::codesMs},
    {"sort", &StepStats::sortMs},           {"hierarchy", &StepStats::hierarchyMs},
    {"traversal", &StepStats::traversalMs}, {"pair sort", &StepStats::pairSortMs},
    {"delta", &StepStats::deltaMs},
};

/// What the last step did, and where it ran.
struct Stats : StepStats {
  std::string backend;  ///< where the last step ran: "host" or the GPU's name
  std::string reason;   ///< why there

  /// With Backend::automatic: the median of the last steps or trials on the host, looked at now and
  /// then. 0 if there were none.
  double hostMedianMs = 0;
  double gpuMedianMs = 0;    ///< the same of the GPU
  std::size_t switches = 0;  ///< with Backend::automatic: how often steps moved to the other

  int threads = 0;  ///< host threads in use

  /// The host's inner loops in use: "avx512", "avx2", "neon" or "baseline".
  std::string instructions;
};

/// Empty if `backend` can be had with this build on this machine, else one line saying why not.
GPULBVH_API std::string whyUnavailable(Backend backend);
/// The same of an instruction set: whether this build and this processor have it.
GPULBVH_API std::string whyUnavailable(InstructionSet instructions);

}  // namespace lbvh
