// SPDX-License-Identifier: Zlib
#include "queries.h"

#include <exception>
#include <new>

namespace {

thread_local const void* innermostQuery = nullptr;

/// Up to this many proxies are tested one by one, which is faster than adding them to the tree.
constexpr std::size_t kOneByOne = 32;

}  // namespace

GpuLbvhQueries::Running::Running(const GpuLbvhQueries& of) : m_of(of), m_outer(innermost()) {
  innermostQuery = this;
}

GpuLbvhQueries::Running::~Running() { innermostQuery = m_outer; }

const GpuLbvhQueries::Running* GpuLbvhQueries::Running::innermost() {
  return static_cast<const Running*>(innermostQuery);
}

bool GpuLbvhQueries::Running::contains(const Running* list, const GpuLbvhQueries& queries) {
  while (list != nullptr && &list->m_of != &queries) list = list->m_outer;
  return list != nullptr;
}

void GpuLbvhQueries::noteChanged(GpuLbvhProxy* proxy) {
  // Once an eighth of the proxies have changed, the packed scene is of little use.
  if (m_changed.waiting() >= mostWaiting() || m_changed.size() > 64 + m_proxies.boxes().size() / 8)
    return invalidateScene();
  try {
    m_changed.add(proxy);
  } catch (const std::bad_alloc&) {
    return invalidateScene();
  }
  if (m_changed.waiting() > kOneByOne) m_isBehind.store(true, std::memory_order_relaxed);
}

/// Adds the proxies that have changed since the last step, if their changes were not listed.
void GpuLbvhQueries::noteEarlier() {
  if (m_isNoting || m_isStale.load(std::memory_order_relaxed)) return;
  m_isNoting = true;
  m_proxies.changed().forEach([this](std::uint32_t slot) {
    if (m_isNoting) noteChanged(m_proxies.at(slot));
  });
  if (m_isNoting && m_changed.waiting() <= kOneByOne)
    m_isBehind.store(false, std::memory_order_release);
}

void GpuLbvhQueries::useLastStep() {
  const lbvh::PackedBoxes* packed = packedOf(m_finder);
  if (packed == nullptr) {  // e.g. after a step on a GPU the host has no blocks
    m_changed.clear();
    return invalidateScene();
  }
  m_scene = packed;
  m_isTree = false;
  clearChanged();
  const bool isAsked = m_isAsked.load(std::memory_order_relaxed);
  m_isAsked.store(false, std::memory_order_relaxed);
  if (isAsked) return;
  m_isNoting = false;
  m_isBehind.store(true, std::memory_order_relaxed);
}

void GpuLbvhQueries::keepLastStep() {
  if (!m_isTree && packedOf(m_finder) == nullptr) invalidateScene();
}

/// Marks the scene as up to date. A thread that sees this function's last store also sees
/// everything that was packed before.
void GpuLbvhQueries::clearChanged() {
  m_changed.clear();
  m_isNoting = true;
  m_isLost = false;
  m_isStale.store(false, std::memory_order_release);
  m_isBehind.store(false, std::memory_order_release);
}

/// Brings the scene up to date. Returns false if all boxes must be tested instead. Several threads
/// may call this at the same time. Each sees the scene as stale or behind until one thread has
/// updated it, and none traverses it before that. A nested query does not update the scene,
/// because the outer query is still traversing it.
bool GpuLbvhQueries::refreshScene(const Running& running) {
  const auto isStale = [this] { return m_isStale.load(std::memory_order_acquire); };
  const auto isBehind = [this] { return m_isBehind.load(std::memory_order_acquire); };
  if (!m_isAsked.load(std::memory_order_relaxed)) m_isAsked.store(true, std::memory_order_relaxed);
  if (!isStale() && !isBehind()) return !m_isLost;
  if (running.isNested()) return !isStale() && !m_isLost;
  const std::lock_guard<std::mutex> lock(m_rebuild);
  noteEarlier();
  if (isStale()) return packAll();
  if (isBehind()) placeChanged();
  return !m_isLost;
}

/// Moves the listed proxies to the tree. If memory runs out, they stay in the list.
void GpuLbvhQueries::placeChanged() {
  try {
    m_changed.place();
    m_isBehind.store(false, std::memory_order_release);
  } catch (const std::bad_alloc&) {
  }
}

/// Packs all boxes. Returns false if there is no memory.
bool GpuLbvhQueries::packAll() {
  try {
    if (!m_tree) m_tree.emplace(m_finder.stats().threads);
    m_tree->build(m_proxies.boxes());
    m_scene = packedOf(*m_tree);
    m_isTree = true;
    clearChanged();
  } catch (const std::exception&) {
    m_isLost = m_isNoting = true;
    m_isStale.store(false, std::memory_order_release);
  }
  return !m_isLost;
}
