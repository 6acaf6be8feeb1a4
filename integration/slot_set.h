// SPDX-License-Identifier: Zlib
// Defines a set of slots that gives out its lowest slot first. Not installed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Cuts a vector of bits to the bits of the slots below `slots`.
inline void cutBits(std::vector<std::uint64_t>& bits, std::size_t slots) {
  bits.resize((slots + 63) / 64);
  if (slots % 64 != 0) bits.back() &= (std::uint64_t{1} << slots % 64) - 1;
}

class GpuLbvhSlotSet {
 public:
  /// Ensures that add() does not fail for slots below `slots`. @throws std::bad_alloc
  void reserve(std::size_t slots) {
    m_slots.reserve(slots / 64 + 1);
    m_words.reserve(slots / 4096 + 1);
  }
  bool contains(std::uint32_t slot) const {
    return slot / 64 < m_slots.size() && (m_slots[slot / 64] >> slot % 64 & 1) != 0;
  }
  void add(std::uint32_t slot) {
    if (slot / 64 >= m_slots.size()) m_slots.resize(slot / 64 + 1);
    if (slot / 4096 >= m_words.size()) m_words.resize(slot / 4096 + 1);
    m_slots[slot / 64] |= std::uint64_t{1} << slot % 64;
    m_words[slot / 4096] |= std::uint64_t{1} << slot / 64 % 64;
  }
  /// Removes the lowest slot and returns it. Requires that there is one.
  std::uint32_t takeLowest() {
    std::size_t group = 0;
    while (m_words[group] == 0) ++group;
    const std::size_t word =
        64 * group + static_cast<std::size_t>(std::countr_zero(m_words[group]));
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(m_slots[word]));
    m_slots[word] &= m_slots[word] - 1;
    if (m_slots[word] == 0) m_words[group] &= m_words[group] - 1;
    return static_cast<std::uint32_t>(64 * word) + bit;
  }
  /// Removes all slots from `slots` on.
  void cut(std::size_t slots) {
    if (slots >= 64 * m_slots.size()) return;
    cutBits(m_slots, slots);
    cutBits(m_words, m_slots.size());
    if (slots % 64 != 0 && m_slots.back() == 0)
      m_words.back() &= ~(std::uint64_t{1} << (m_slots.size() - 1) % 64);
  }

 private:
  std::vector<std::uint64_t> m_slots;  ///< a bit for each slot
  std::vector<std::uint64_t> m_words;  ///< a bit for each word of m_slots that is not 0
};
