// SPDX-License-Identifier: Zlib
// Defines an array that Linux can grow without a copy: mremap moves its pages to another address.
// Growing takes microseconds, and Linux allocates a page only when it is first used. On other
// systems growing copies the array. On Linux small arrays are copied, too, because they share their
// pages with other allocations. With 6,000 objects of debris the longest of 12 steps takes 4.3 ms
// if pages are moved. It takes 5.8 ms if arrays are copied and grow by a quarter, and 4.7 ms if
// they are copied and double (median of 10 interleaved runs). Not installed.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

/// The memory of a GpuLbvhGrowingArray, aligned to at least 16 bytes.
class GpuLbvhPages {
 public:
  GpuLbvhPages() = default;
  ~GpuLbvhPages();
  GpuLbvhPages(GpuLbvhPages&& other) noexcept { *this = std::move(other); }
  GpuLbvhPages& operator=(GpuLbvhPages&& other) noexcept {
    std::swap(m_data, other.m_data);
    std::swap(m_bytes, other.m_bytes);
    return *this;
  }

  void* data() const { return m_data; }
  /// Keeps the bytes up to the previous size. The address may change. @throws std::bad_alloc, with
  /// nothing changed
  void grow(std::size_t bytes);
  /// On Linux, gives back whole pages after the first `bytes` bytes. The address does not change.
  /// @return whether bytes() has changed
  bool shrink(std::size_t bytes) noexcept;
  std::size_t bytes() const { return m_bytes; }

 private:
  void* m_data = nullptr;
  std::size_t m_bytes = 0;
};

/// @tparam T is copied as bytes and never destroyed
template <class T>
class GpuLbvhGrowingArray {
 public:
  GpuLbvhGrowingArray() = default;
  GpuLbvhGrowingArray(GpuLbvhGrowingArray&& other) noexcept { *this = std::move(other); }
  GpuLbvhGrowingArray& operator=(GpuLbvhGrowingArray&& other) noexcept {
    std::swap(m_pages, other.m_pages);
    std::swap(m_size, other.m_size);
    return *this;
  }

  T* data() const { return static_cast<T*>(m_pages.data()); }
  std::size_t size() const { return m_size; }
  std::size_t capacity() const { return m_pages.bytes() / sizeof(T); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& back() { return data()[m_size - 1]; }

  /// @throws std::bad_alloc, with nothing changed
  void reserve(std::size_t n) {
    constexpr std::size_t kMax = (std::size_t(-1) / sizeof(T) - 64) / 5 * 4;  // avoids overflow
    if (n > kMax) throw std::bad_alloc();
    if (n > capacity()) m_pages.grow(reservedFor(n) * sizeof(T));
  }
  /// Frees the memory beyond the capacity that reserve(n) gives. Requires n >= size().
  void shrink(std::size_t n) noexcept { m_pages.shrink(reservedFor(n) * sizeof(T)); }
  void clear() { m_size = 0; }
  void truncate(std::size_t size) { m_size = size; }
  /// Requires size() < capacity().
  void push_back(const T& one) { new (data() + m_size++) T(one); }
  void pop_back() { --m_size; }

 private:
  static std::size_t reservedFor(std::size_t n) { return n + n / 4 + 64; }

  GpuLbvhPages m_pages;
  std::size_t m_size = 0;
};
