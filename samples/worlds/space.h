// SPDX-License-Identifier: Zlib
// Holds the memory of the worlds, and runs functions for each box, on the host's cores or on a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worlds/bodies.h"

struct CUstream_st;  // cudaStream_t is a pointer to this type

namespace worlds {

class Space {
 public:
  virtual ~Space() = default;

  virtual std::string name() const = 0;      ///< name for people
  virtual CUstream_st* stream() = 0;         ///< stream for DevicePairFinder; null on the host
  virtual int threads() const { return 1; }  ///< number of host threads

  /// Allocates memory that lives as long as the space.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Copies between the memory of the host and of the space, after all queued work is done.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  /// Calls f(i) for each i < n.
  virtual void forEach(std::size_t n, const WriteBox& f) = 0;
  virtual void forEach(std::size_t n, const MoveBody& f) = 0;

  /// Calls `step`, which queues work. On a GPU, the second call records this work as a
  /// graph and launches it. Later calls only launch the graph, until forget().
  virtual void repeat(const std::function<void()>& step) = 0;
  virtual void forget() = 0;

  template <class T>
  T* put(const std::vector<T>& list) {
    T* there = static_cast<T*>(allocate(list.size() * sizeof(T)));
    copy(there, list.data(), list.size() * sizeof(T));
    return there;
  }
  template <class T>
  std::vector<T> get(const T* there, std::size_t size) {
    std::vector<T> list(size);
    copy(list.data(), there, size * sizeof(T));
    return list;
  }
};

std::unique_ptr<Space> makeHostSpace(int threads);
/// Makes a space on the GPU; only in builds with CUDA. @throws std::runtime_error
std::unique_ptr<Space> makeCudaSpace();

}  // namespace worlds
