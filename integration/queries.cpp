// SPDX-License-Identifier: Zlib
#include "queries.h"

#include <exception>
#include <new>

namespace {
thread_local const void* innermostQuery = nullptr;
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

void GpuLbvhQueries::markChanged(GpuLbvhProxy* proxy) {
  if (proxy->m_isChanged || m_isStale.load(std::memory_order_relaxed)) return;
  // A linear test of a few is cheaper than a rebuild; many in a row pay for one.
  const std::size_t few = 64 + m_proxies.boxes().size / 256;
  if (m_changed.size() >= few || !appendChanged(proxy)) invalidateScene();
}

/// False if there is no memory.
bool GpuLbvhQueries::appendChanged(GpuLbvhProxy* proxy) {
  try {
    m_changed.push_back(proxy);
  } catch (const std::bad_alloc&) {
    return false;
  }
  proxy->m_isChanged = true;
  return true;
}

void GpuLbvhQueries::useLastStep() {
  const lbvh::PackedScene packed = m_finder.packed();
  if (packed.boxes == nullptr) return invalidateScene();  // a step on a GPU leaves nothing here
  m_scene = lbvh::SceneQuery(packed);
  clearChanged();
}

void GpuLbvhQueries::keepLastStep() {
  if (m_finder.packed().boxes == nullptr && m_finder.tree().nodes.empty()) invalidateScene();
}

void GpuLbvhQueries::clearChanged() {
  for (GpuLbvhProxy* proxy : m_changed) proxy->m_isChanged = false;
  m_changed.clear();
  m_isLost = false;
  m_isStale.store(false, std::memory_order_release);
}

/// False: all boxes must be tested. Several threads may come here together. All of them see the
/// scene as stale until one has built a tree, and none traverses a stale one. The exception is a
/// query whose callback made the scene stale and asks again: its own traversal must stay whole, so
/// the nested query builds none.
bool GpuLbvhQueries::refreshScene(const Running& running) {
  if (!m_isStale.load(std::memory_order_acquire)) return !m_isLost;
  if (running.isNested()) return false;
  const std::lock_guard<std::mutex> lock(m_rebuild);
  if (!m_isStale.load(std::memory_order_relaxed)) return !m_isLost;
  try {
    m_finder.buildTree(m_proxies.boxes());
    m_scene = lbvh::SceneQuery(m_finder.tree());
    clearChanged();
  } catch (const std::exception&) {
    m_isLost = true;
    m_isStale.store(false, std::memory_order_release);
  }
  return !m_isLost;
}
