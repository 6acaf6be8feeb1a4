#include "queries.h"

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>

#include <cmath>
#include <exception>
#include <new>

GpuLbvhRay::GpuLbvhRay(const btVector3& from, const btBroadphaseRayCallback& callback,
                       const btVector3& sweptMin, const btVector3& sweptMax)
    : m_from(from),
      m_inverse(callback.m_rayDirectionInverse),
      m_sweptMin(sweptMin),
      m_sweptMax(sweptMax),
      m_length(callback.m_lambda_max) {
  // Bullet writes BT_LARGE_FLOAT for a direction's zero, and NaN for all axes of a zero length:
  // such a ray hits what contains its origin.
  for (int axis = 0; axis < 3; ++axis) {
    m_isParallel[axis] = !(btFabs(m_inverse[axis]) < BT_LARGE_FLOAT);
    m_isInfinite[axis] = !std::isfinite(m_inverse[axis]);
  }
}

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

bool GpuLbvhQueries::Running::isIn(const GpuLbvhQueries& queries, const Running* list) {
  while (list != nullptr && &list->m_of != &queries) list = list->m_outer;
  return list != nullptr;
}

void GpuLbvhQueries::changed(GpuLbvhProxy* proxy) {
  if (proxy->m_isChanged || m_treeIsStale.load(std::memory_order_relaxed)) return;
  // A linear test of a few is cheaper than a rebuild; many in a row pay for one.
  const std::size_t few = 64 + m_proxies.boxes().size / 256;
  if (m_changed.size() >= few || !remember(proxy)) treeIsStale();
}

bool GpuLbvhQueries::remember(GpuLbvhProxy* proxy) {
  try {
    m_changed.push_back(proxy);
  } catch (const std::bad_alloc&) {
    return false;
  }
  proxy->m_isChanged = true;
  return true;
}

// A step on a GPU leaves nothing here.
void GpuLbvhQueries::stepIsDone() {
  m_step = m_finder.packed();
  if (m_step.resting != nullptr)
    forgetChanged();
  else
    treeIsStale();
}

void GpuLbvhQueries::forgetChanged() {
  for (GpuLbvhProxy* proxy : m_changed) proxy->m_isChanged = false;
  m_changed.clear();
  m_treeIsLost = false;
  m_treeIsStale.store(false, std::memory_order_release);
}

// False: all boxes must be tested. Several threads may come here together: all see the tree as
// stale until one has rebuilt it, and nobody traverses a stale tree, but for the query around one
// that a callback asks.
bool GpuLbvhQueries::refreshTree(const Running& running) {
  if (!m_treeIsStale.load(std::memory_order_acquire)) return !m_treeIsLost;
  if (running.isNested()) return false;
  const std::lock_guard<std::mutex> lock(m_rebuild);
  if (!m_treeIsStale.load(std::memory_order_relaxed)) return !m_treeIsLost;
  try {
    m_step = {};
    m_finder.buildTree(m_proxies.boxes());
    forgetChanged();
  } catch (const std::exception&) {
    m_treeIsLost = true;
    m_treeIsStale.store(false, std::memory_order_release);
  }
  return !m_treeIsLost;
}
