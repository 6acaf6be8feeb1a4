// SPDX-License-Identifier: Zlib
#include "growing_array.h"

#if defined(__linux__)

namespace {

void* newPages(std::size_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void* movePages(void* pages, std::size_t from, std::size_t to) {
#if defined(__SANITIZE_THREAD__)
  // It does not see mremap: it would take what was there before for another thread's.
  void* const moved = newPages(to);
  if (moved == MAP_FAILED) return moved;
  std::memcpy(moved, pages, from);
  munmap(pages, from);
  return moved;
#else
  return mremap(pages, from, to, MREMAP_MAYMOVE);
#endif
}

}  // namespace

void GpuLbvhPages::grow(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  bytes = (bytes + kPage - 1) / kPage * kPage;
  void* grown = m_data == nullptr ? newPages(bytes) : movePages(m_data, m_bytes, bytes);
  if (grown == MAP_FAILED) throw std::bad_alloc();
  m_data = grown;
  m_bytes = bytes;
}

GpuLbvhPages::~GpuLbvhPages() {
  if (m_data != nullptr) munmap(m_data, m_bytes);
}

#else

void GpuLbvhPages::grow(std::size_t bytes) {
  void* grown = ::operator new (bytes, std::align_val_t{16});
  if (m_data != nullptr) std::memcpy(grown, m_data, m_bytes);
  ::operator delete (std::exchange(m_data, grown), std::align_val_t{16});
  m_bytes = bytes;
}

GpuLbvhPages::~GpuLbvhPages() { ::operator delete (m_data, std::align_val_t{16}); }

#endif
