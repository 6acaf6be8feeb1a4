// SPDX-License-Identifier: Zlib
#include "growing_array.h"

namespace {

constexpr std::align_val_t kAlign{16};

void* copyOf(const void* bytes, std::size_t size, std::size_t capacity) {
  void* const copy = ::operator new(capacity, kAlign);
  if (size != 0) std::memcpy(copy, bytes, size);
  return copy;
}

}  // namespace

#if defined(__linux__)

namespace {

/// Smaller arrays are copied, because system calls and page faults would cost more.
constexpr std::size_t kMinMapped = 65536;

bool areMapped(std::size_t bytes) { return bytes >= kMinMapped; }

void release(void* memory, std::size_t bytes) {
  if (areMapped(bytes))
    munmap(memory, bytes);
  else
    ::operator delete(memory, kAlign);
}

void* newPages(std::size_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void* movePages(void* pages, std::size_t from, std::size_t to) {
#if !defined(__SANITIZE_THREAD__)
  if (areMapped(from)) return mremap(pages, from, to, MREMAP_MAYMOVE);
#endif
  // ThreadSanitizer does not know mremap. It would report earlier accesses at the new address as
  // races.
  void* const moved = newPages(to);
  if (moved == MAP_FAILED) return moved;
  if (from != 0) std::memcpy(moved, pages, from);
  release(pages, from);
  return moved;
}

constexpr std::size_t kPage = 4096;

std::size_t wholePages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void GpuLbvhPages::grow(std::size_t bytes) {
  if (!areMapped(bytes)) {
    void* const grown = copyOf(m_data, m_bytes, bytes);
    release(m_data, m_bytes);
    m_data = grown;
  } else {
    bytes = wholePages(bytes);
    void* const grown = movePages(m_data, m_bytes, bytes);
    if (grown == MAP_FAILED) throw std::bad_alloc();
    m_data = grown;
  }
  m_bytes = bytes;
}

bool GpuLbvhPages::shrink(std::size_t bytes) noexcept {
  bytes = wholePages(bytes > kMinMapped ? bytes : kMinMapped);
  if (bytes >= m_bytes) return false;
  if (munmap(static_cast<char*>(m_data) + bytes, m_bytes - bytes) != 0) return false;
  m_bytes = bytes;
  return true;
}

GpuLbvhPages::~GpuLbvhPages() { release(m_data, m_bytes); }

#else

void GpuLbvhPages::grow(std::size_t bytes) {
  void* const grown = copyOf(m_data, m_bytes, bytes);
  ::operator delete(std::exchange(m_data, grown), kAlign);
  m_bytes = bytes;
}

bool GpuLbvhPages::shrink(std::size_t) noexcept { return false; }

GpuLbvhPages::~GpuLbvhPages() { ::operator delete(m_data, kAlign); }

#endif
