// For each proxy that has pairs, the first of them: an open-addressing hash table by address.
// Takes any broad phase's proxies and reads none. Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct btBroadphaseProxy;

/// Of a pointer's bits, spread over all 64 (the multiplier is 2^64 / golden ratio).
inline std::uint64_t mixedBits(const btBroadphaseProxy* proxy) {
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(proxy) * 0x9E3779B97F4A7C15u;
  return bits ^ (bits >> 32);
}

class GpuLbvhProxyTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// kNone if the proxy is not here.
  std::uint32_t get(const btBroadphaseProxy* proxy) const {
    return m_slots.empty() ? kNone : m_slots[place(proxy)].first;
  }

  /// Room for two more, whom `at` then takes in. @throws std::bad_alloc, with nothing changed
  void reserveTwo() {
    if (4 * (m_count + 2) > 3 * m_slots.size()) grow();
  }

  /// Takes the proxy in with kNone if it is not here.
  std::uint32_t& at(const btBroadphaseProxy* proxy) {
    Slot& slot = m_slots[place(proxy)];
    if (slot.proxy == nullptr) ++m_count;
    slot.proxy = proxy;
    return slot.first;
  }

  void forget(const btBroadphaseProxy* proxy) {
    if (get(proxy) != kNone) erase(place(proxy));
  }

  /// Where the search for the proxy begins.
  const void* address(const btBroadphaseProxy* proxy) const {
    return m_slots.empty() ? nullptr : &m_slots[home(proxy)];
  }

 private:
  struct Slot {
    const btBroadphaseProxy* proxy = nullptr;
    std::uint32_t first = kNone;
  };

  std::size_t home(const btBroadphaseProxy* proxy) const {
    return static_cast<std::size_t>(mixedBits(proxy)) & (m_slots.size() - 1);
  }
  std::size_t after(std::size_t at) const { return (at + 1) & (m_slots.size() - 1); }

  /// Where the proxy is, or would be.
  std::size_t place(const btBroadphaseProxy* proxy) const {
    std::size_t at = home(proxy);
    while (m_slots[at].proxy != nullptr && m_slots[at].proxy != proxy) at = after(at);
    return at;
  }

  // Closes the gap with what was pushed past it, so that no search stops early.
  void erase(std::size_t gap) {
    --m_count;
    for (std::size_t at = after(gap); m_slots[at].proxy != nullptr; at = after(at)) {
      const std::size_t mask = m_slots.size() - 1;
      if (((at - home(m_slots[at].proxy)) & mask) < ((at - gap) & mask)) continue;
      m_slots[gap] = m_slots[at];
      gap = at;
    }
    m_slots[gap] = {};
  }

  void grow() {
    std::vector<Slot> slots(m_slots.empty() ? 16 : 2 * m_slots.size());
    slots.swap(m_slots);
    for (const Slot& slot : slots)
      if (slot.proxy != nullptr) m_slots[place(slot.proxy)] = slot;
  }

  std::vector<Slot> m_slots;  // a power of two of them, at most three quarters in use
  std::size_t m_count = 0;
};
