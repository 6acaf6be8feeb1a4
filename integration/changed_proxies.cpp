// SPDX-License-Identifier: Zlib
#include "changed_proxies.h"

#include <algorithm>

namespace {

/// The proxy's box, enlarged by an eighth of its size on each side. A proxy usually stays within it
/// for some steps.
btDbvtVolume enlargedBoxOf(const GpuLbvhProxy* proxy) {
  const btVector3 size = proxy->m_aabbMax - proxy->m_aabbMin;
  btVector3 margin(0, 0, 0);
  for (int axis = 0; axis < 3; ++axis) margin[axis] = std::max(btScalar(0), size[axis] / 8);
  return btDbvtVolume::FromMM(proxy->m_aabbMin - margin, proxy->m_aabbMax + margin);
}

bool hasNan(const GpuLbvhProxy* proxy) {
  const GpuLbvhBox box(proxy);
  return !isSameBox(box, box);
}

}  // namespace

void GpuLbvhChangedProxies::add(GpuLbvhProxy* proxy) {
  if (proxy->m_isWaiting) return;
  m_waiting.push_back(proxy);
  if (!proxy->m_isChanged) {
    try {
      m_all.push_back(proxy);
    } catch (...) {
      m_waiting.pop_back();
      throw;
    }
  }
  proxy->m_isChanged = proxy->m_isWaiting = true;
}

void GpuLbvhChangedProxies::place() {
  std::uint32_t slots = 0;
  for (const GpuLbvhProxy* proxy : m_waiting) slots = std::max(slots, proxy->m_slot + 1);
  if (slots > m_leaves.size()) m_leaves.resize(slots + slots / 16, nullptr);
  for (GpuLbvhProxy* proxy : m_waiting) {
    proxy->m_isWaiting = false;
    if (!proxy->isAlive() || hasNan(proxy)) continue;  // no query visits such proxies
    btDbvtNode*& leaf = m_leaves[proxy->m_slot];
    btDbvtVolume enlarged = enlargedBoxOf(proxy);
    if (leaf == nullptr)
      leaf = m_tree.insert(enlarged, proxy);
    else if (!leaf->volume.Contain(btDbvtVolume::FromMM(proxy->m_aabbMin, proxy->m_aabbMax)))
      m_tree.update(leaf, enlarged);
  }
  m_waiting.clear();
}

void GpuLbvhChangedProxies::clear() {
  for (GpuLbvhProxy* proxy : m_all) {
    proxy->m_isChanged = proxy->m_isWaiting = false;
    if (proxy->m_slot < m_leaves.size()) m_leaves[proxy->m_slot] = nullptr;
  }
  m_all.clear();
  m_waiting.clear();
  if (!m_tree.empty()) m_tree.clear();
}
