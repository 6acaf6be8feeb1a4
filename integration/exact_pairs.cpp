// SPDX-License-Identifier: Zlib
#include "exact_pairs.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace {

bool contains(lbvh::View<const lbvh::Pair> pairs, lbvh::Pair pair) {
  return std::binary_search(pairs.begin(), pairs.end(), pair);
}

/// Clears the list. Also frees its memory if only a small part of it was in use.
void empty(std::vector<lbvh::Pair>& list) {
  if (list.capacity() > 8 * list.size() + 4096) list = std::vector<lbvh::Pair>();
  list.clear();
}

}  // namespace

void GpuLbvhExactPairs::update() {
  try {
    m_rejected.swap(m_rejectedBefore);
    empty(m_rejected);
    for (const lbvh::Pair pair : m_finder.pairs())
      if (m_proxies.isUndecided(pair) &&
          !m_proxies.overlap(m_proxies.at(pair.first), m_proxies.at(pair.second)))
        m_rejected.push_back(pair);
    compare();
  } catch (const std::bad_alloc&) {
    m_rejected.clear();
    throw;
  }
}

void GpuLbvhExactPairs::compare() {
  const lbvh::View<const lbvh::Pair> gone = m_finder.removed(), come = m_finder.added();
  empty(m_changed);
  std::set_difference(m_rejected.begin(), m_rejected.end(), m_rejectedBefore.begin(),
                      m_rejectedBefore.end(), std::back_inserter(m_changed));
  empty(m_removed);
  std::set_union(gone.begin(), gone.end(), m_changed.begin(), m_changed.end(),
                 std::back_inserter(m_removed));

  m_changed.clear();
  for (const lbvh::Pair pair : m_rejectedBefore)
    if (isPair(pair)) m_changed.push_back(pair);
  empty(m_added);
  std::set_union(come.begin(), come.end(), m_changed.begin(), m_changed.end(),
                 std::back_inserter(m_added));
  const auto isRejected = [this](lbvh::Pair pair) { return contains(viewOf(m_rejected), pair); };
  m_added.erase(std::remove_if(m_added.begin(), m_added.end(), isRejected), m_added.end());
}

bool GpuLbvhExactPairs::isPair(lbvh::Pair pair) const {
  if (contains(viewOf(m_rejected), pair)) return false;
  try {
    return contains(m_finder.pairs(), pair);
  } catch (const std::bad_alloc&) {  // no memory to sort the finder's pairs
    return m_proxies.overlap(m_proxies.at(pair.first), m_proxies.at(pair.second));
  }
}
