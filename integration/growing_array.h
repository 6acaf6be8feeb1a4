// SPDX-License-Identifier: Zlib
// An array that grows without being copied, where the system can move its pages to another address
// (Linux): growing takes microseconds, and memory is touched only as it is used. Elsewhere it is
// copied. For large arrays: it takes whole pages. Not installed.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

/// Bytes for a GpuLbvhGrowingArray. Aligned by 16 at least.
class GpuLbvhPages {
 public:
  GpuLbvhPages() = default;
  ~GpuLbvhPages();
  GpuLbvhPages(const GpuLbvhPages&) = delete;
  GpuLbvhPages& operator=(const GpuLbvhPages&) = delete;

  void* data() const { return m_data; }
  /// The bytes up to the old size stay; the address may change. @throws std::bad_alloc, with
  /// nothing changed
  void grow(std::size_t bytes);
  std::size_t bytes() const { return m_bytes; }

 private:
  void* m_data = nullptr;
  std::size_t m_bytes = 0;
};

/// @tparam T may be moved as bytes, and need not be destroyed
template <class T>
class GpuLbvhGrowingArray {
 public:
  T* data() const { return static_cast<T*>(m_pages.data()); }
  std::size_t size() const { return m_size; }
  std::size_t capacity() const { return m_pages.bytes() / sizeof(T); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& back() { return data()[m_size - 1]; }

  /// @throws std::bad_alloc, with nothing changed
  void reserve(std::size_t n) {
    constexpr std::size_t kMost = (std::size_t(-1) / sizeof(T) - 64) / 5 * 4;  // or it overflows
    if (n > kMost) throw std::bad_alloc();
    if (n > capacity()) m_pages.grow((n + n / 4 + 64) * sizeof(T));
  }
  /// There is room.
  void push_back(const T& one) { new (data() + m_size++) T(one); }
  void pop_back() { --m_size; }

 private:
  GpuLbvhPages m_pages;
  std::size_t m_size = 0;
};
