// SPDX-License-Identifier: Zlib
#include "broadphase/host/verlet/verlet_lists.h"

#include <utility>

#include "broadphase/host/block_query.h"

namespace lbvh {

VerletLists::Plan VerletLists::plan(const StepInput& input) {
  before_ = std::exchange(state_, State::unknown);
  const View<Hub> hubs = candidates_.hubs();
  const Plan plan = skin_.plan(input, before_ != State::unknown, {hubs.data(), hubs.size()});
  if (plan != Plan::escaped) reaches_.forget();
  return plan;
}

void VerletLists::growAll(const StepInput& input) {
  reaches_.forget();
  skin_.growAll(input);
}

void VerletLists::adopt(const StepInput& input, NeighbourLists lists, const StepStats& stats,
                        const StepWork& work) {
  candidates_.adopt(lists, input.boxes, skin_.grown(input).boxes);
  skin_.endAll(stats, lists.indices.size(), work);
}

void VerletLists::endAll() {
  if (candidates_.areKnown())
    state_ = State::found;
  else
    skin_.turnOff();
}

bool VerletLists::compare(const StepInput& input, NeighbourLists lists, const PackedBoxes& all,
                          StepWork& work) {
  const BoxChanges changes = changesOf(input);
  findFormerOfHubs(changes, all);
  const bool areKnown = candidates_.compare(changes, lists);
  candidates_.count(work);
  return areKnown;
}

void VerletLists::commit(const StepInput& input, const NeighbourLists& lists) {
  candidates_.commit(changesOf(input), lists);
}

void VerletLists::endEscaped(const StepInput& input, StepStats& stats, StepWork& work) {
  work.tested += reaches_.renew(tasks_, changesOf(input), candidates_.rows(), skin_.changesInAll());
  skin_.endEscaped(stats, work);
  state_ = State::kept;
}

BoxChanges VerletLists::changesOf(const StepInput& input) const {
  return {input.boxes,   skin_.changed(),    skin_.changes(),      skin_.escaped(),
          skin_.words(), skin_.escapedIds(), input.removedObjects, skin_.grown().boxes};
}

/// Finds, for each escaped hub, all boxes whose rows may list the hub.
void VerletLists::findFormerOfHubs(const BoxChanges& changes, const PackedBoxes& all) {
  for (Hub& hub : candidates_.hubs()) {
    hub.former.clear();
    if (!changes.hasEscaped(hub.id)) continue;
    // The hub's candidates need new reaches. Its row does not list them, so all reaches are
    // discarded.
    reaches_.forget();
    queryPacked(
        all, [&](const Aabb& bounds) { return overlap(bounds, hub.grown); },
        [&](std::uint32_t id) { hub.former.push_back(id); });
  }
}

}  // namespace lbvh
