#include "drift.h"

#include <algorithm>
#include <new>

GpuLbvhDrift::Inflated::Inflated(const lbvh::Aabb& box, double by) {
  by *= 1.00001;  // the drifts were summed with single precision
  for (int axis = 0; axis < 3; ++axis) {
    min[axis] = double(box.min[axis]) - by;
    max[axis] = double(box.max[axis]) + by;
  }
}

void GpuLbvhDrift::forget() {
  m_isComplete = false;
  m_build = m_queries.builds();
}

bool GpuLbvhDrift::treeServes() {
  if (m_build != m_queries.builds()) restart();
  return m_isComplete && m_finder.hasTree();
}

void GpuLbvhDrift::restart() {
  for (GpuLbvhProxy* proxy : m_far) proxy->m_isFar = false;
  m_far.clear();
  m_slack = 0;
  m_build = m_queries.builds();
  m_isComplete = false;
  try {
    m_drift.assign(m_proxies.boxes().size, 0);
    m_isComplete = true;
  } catch (const std::bad_alloc&) {
    return;
  }
  m_limit = smallDistance();
}

/// A quarter of the usual extent, by a sample: inflated so much, a query meets few boxes more.
float GpuLbvhDrift::smallDistance() const {
  constexpr std::size_t kSample = 31;
  const lbvh::View<const lbvh::Aabb> boxes = m_proxies.boxes();
  float extents[kSample];
  std::size_t n = 0;
  for (std::size_t i = 0; i < kSample; ++i) {
    if (boxes.empty()) break;
    const lbvh::Aabb& box = boxes[i * boxes.size / kSample];
    const float extent =
        (box.max[0] - box.min[0] + box.max[1] - box.min[1] + box.max[2] - box.min[2]) / 3;
    if (extent < 1e30f) extents[n++] = extent;
  }
  if (n == 0) return 0;
  std::nth_element(extents, extents + n / 2, extents + n);
  return std::max(extents[n / 2], 0.0f) / 4;
}

// Written so that what had no box, or has one with a NaN now, is not near.
bool GpuLbvhDrift::isNear(std::uint32_t slot, const lbvh::Aabb& before) {
  if (slot >= m_drift.size()) return false;
  const lbvh::Aabb& now = m_proxies.boxes()[slot];
  float growth = 0;
  for (int axis = 0; axis < 3; ++axis)
    for (const float by : {before.min[axis] - now.min[axis], now.max[axis] - before.max[axis]}) {
      if (!(by <= m_limit)) return false;
      growth = std::max(growth, by);
    }
  const float drift = m_drift[slot] + growth;
  if (!(drift <= m_limit)) return false;
  m_drift[slot] = drift;
  m_slack = std::max(m_slack, drift);
  return true;
}

void GpuLbvhDrift::changed(GpuLbvhProxy* proxy, const lbvh::Aabb& before) {
  // Those that go far are tested one by one: at most a small share of all.
  const std::size_t few = 64 + m_proxies.boxes().size / 16;
  if (m_build != m_queries.builds()) restart();
  if (!m_isComplete || proxy->m_isFar || isNear(proxy->m_slot, before)) return;
  try {
    m_isComplete = m_far.size() < few;
    if (m_isComplete) m_far.push_back(proxy);
    proxy->m_isFar = m_isComplete;
  } catch (const std::bad_alloc&) {
    m_isComplete = false;
  }
}
