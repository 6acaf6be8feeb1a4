// SPDX-License-Identifier: Zlib
// Where the worlds live: memory, and what runs a function for each box. The host's cores, or a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worlds/bodies.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace worlds {

class Space {
 public:
  virtual ~Space() = default;

  virtual std::string name() const = 0;      ///< for people
  virtual CUstream_st* stream() = 0;         ///< for DevicePairFinder; null on the host
  virtual int threads() const { return 1; }  ///< of the host

  /// Memory that lives as long as the space.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Between the host's memory and the space's, when all that was asked of it is done.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  /// f(i) for each i < n.
  virtual void forEach(std::size_t n, const WriteBox& f) = 0;
  virtual void forEach(std::size_t n, const MoveBody& f) = 0;

  /// Does what `step` asks of the space. A GPU records it as a graph the second time, and from then
  /// on launches that, until forget().
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
/// Only in builds with CUDA. @throws std::runtime_error
std::unique_ptr<Space> makeCudaSpace();

}  // namespace worlds
