// SPDX-License-Identifier: Zlib
#include "scene_drawing.h"

#include <BulletSoftBody/btSoftBody.h>
#include <LinearMath/btAabbUtil2.h>

#include <algorithm>
#include <unordered_set>

#include "world_box.h"

namespace {

/// The value below which the fraction `share` of the values lies.
btScalar quantile(std::vector<btScalar>& values, double share) {
  const auto at = values.begin() + std::ptrdiff_t(share * double(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

bool isBetween(const WorldBox& box, const btVector3& eye, const btVector3& point) {
  btScalar share = 1;
  btVector3 normal;
  return !TestPointAgainstAabb2(box.low, box.high, point) &&
         btRayAabb(eye, point, box.low, box.high, share, normal);
}

/// Gives each object its own tone, so that neighbours can be distinguished. The tone is the same in
/// every picture.
Colour toned(Colour colour, int index) {
  const unsigned hash = unsigned(index) * 2654435761u;
  const float share = float(hash >> 24) / 255, light = float(hash >> 16 & 255) / 255;
  constexpr Colour stone{178, 166, 152};
  return mixed(colour, stone, 0.55f * share).shaded(0.82f + 0.3f * light);
}

Colour colourOf(const btCollisionObject& object) {
  const Colour colour = object.isKinematicObject() ? colours::kinematic
                        : object.isStaticObject()  ? colours::fixed
                        : object.isActive()        ? colours::active
                                                   : colours::sleeping;
  return toned(colour, object.getWorldArrayIndex());
}

Instance instanceOf(const btTransform& place, Colour colour) {
  Instance instance{{}, colour};
  for (int column = 0; column < 3; ++column)
    for (int row = 0; row < 3; ++row)
      instance.model[column * 3 + row] = float(place.getBasis()[row][column]);
  for (int row = 0; row < 3; ++row) instance.model[9 + row] = float(place.getOrigin()[row]);
  return instance;
}

/// Draws the faces of a soft body, or its links if it has no faces (a rope). Uses only inline
/// functions of Bullet's header, so that the soft body library is not needed.
void drawSoft(const btSoftBody& body, Drawing& drawing) {
  for (int i = 0; i < body.m_faces.size(); ++i) {
    for (const btSoftBody::Node* node : body.m_faces[i].m_n) {
      const btVector3 &x = node->m_x, &n = node->m_n;
      drawing.softFaces.triangles.push_back(std::uint32_t(drawing.softFaces.vertices.size()));
      drawing.softFaces.vertices.push_back(
          {{float(x.x()), float(x.y()), float(x.z())}, {float(n.x()), float(n.y()), float(n.z())}});
    }
  }
  if (body.m_faces.size() != 0) return;
  for (int i = 0; i < body.m_links.size(); ++i)
    addLine(drawing.lines, body.m_links[i].m_n[0]->m_x, body.m_links[i].m_n[1]->m_x, colours::soft);
}

}  // namespace

Extent extentOf(World& world) {
  const btCollisionObjectArray& objects = world.bullet().getCollisionObjectArray();
  std::vector<btScalar> lows[3], highs[3], sizes;
  for (const bool withStatic : {false, true}) {
    for (int i = 0; i < objects.size(); ++i) {
      const WorldBox box = boxOf(world, *objects[i]);
      if ((objects[i]->isStaticObject() && !withStatic) || !box.isFinite()) continue;
      sizes.push_back((box.high - box.low).length() / 2);
      for (int axis = 0; axis < 3; ++axis) {
        lows[axis].push_back(box.low[axis]);
        highs[axis].push_back(box.high[axis]);
      }
    }
    if (!lows[0].empty()) break;
  }
  Extent extent;
  for (int axis = 0; axis < 3 && !lows[0].empty(); ++axis) {
    extent.low[axis] = quantile(lows[axis], 0.01);
    extent.high[axis] = std::max(quantile(highs[axis], 0.99), extent.low[axis]);
  }
  if (!sizes.empty()) extent.objectSize = quantile(sizes, 0.5);
  return extent;
}

std::vector<const btCollisionObject*> blockers(World& world, const Extent& extent,
                                               const Camera& camera) {
  const btVector3 half = (extent.high - extent.low) / 2, middle = (extent.high + extent.low) / 2;
  std::vector<btVector3> points = {middle, camera.target};
  for (int corner = 0; corner < 8; ++corner) {
    const btVector3 sign((corner & 1) != 0 ? 1 : -1, (corner & 2) != 0 ? 1 : -1,
                         (corner & 4) != 0 ? 1 : -1);
    points.push_back(middle + half * sign * btScalar(0.9));
  }
  const btVector3 eye = camera.eye();
  std::vector<const btCollisionObject*> found;
  const btCollisionObjectArray& objects = world.bullet().getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i) {
    if (!objects[i]->isStaticObject()) continue;
    const WorldBox box = boxOf(world, *objects[i]);
    if (!box.isFinite() || (box.high - box.low).length2() < half.length2()) continue;
    const bool isAbove = box.low.y() >= extent.high.y();
    if (isAbove || TestPointAgainstAabb2(box.low, box.high, eye) ||
        std::any_of(points.begin(), points.end(),
                    [&](const btVector3& point) { return isBetween(box, eye, point); }))
      found.push_back(objects[i]);
  }
  return found;
}

void SceneDrawing::clear() {
  meshes_ = std::make_unique<ShapeMeshes>();
  ++generation_;
}

void SceneDrawing::draw(World& world, const Camera& camera, const btCollisionObject* picked,
                        const std::vector<Partner>& partners, bool dims, Drawing& drawing) {
  const Extent extent = extentOf(world);
  drawing.low = extent.low;
  drawing.high = extent.high;
  drawing.objectSize = float(extent.objectSize);
  seenThrough_ = blockers(world, extent, camera);
  const btCollisionObjectArray& objects = world.bullet().getCollisionObjectArray();
  std::unordered_set<const btCollisionObject*> isPartner;
  for (const Partner& partner : partners) isPartner.insert(partner.object);
  for (int i = 0; i < objects.size(); ++i) {
    const btCollisionObject& object = *objects[i];
    Colour colour = colourOf(object).shaded(dims ? 0.6f : 1);
    if (&object == picked) colour = colours::picked;
    if (isPartner.count(&object) != 0 && !object.isStaticObject()) colour = colours::partner;
    if (object.isStaticObject()) colour.alpha = kGridAlpha;
    const WorldBox box = boxOf(world, object);
    if (std::find(seenThrough_.begin(), seenThrough_.end(), &object) != seenThrough_.end())
      addBox(drawing.lines, box.low, box.high, colours::fixed.faded(0.5f));
    else if (!object.hasContactResponse())
      addBox(drawing.lines, box.low, box.high, colours::ghost);
    else if (const btSoftBody* soft = btSoftBody::upcast(&object))
      drawSoft(*soft, drawing);
    else
      drawBody(object, colour, drawing);
  }
}

void SceneDrawing::drawBody(const btCollisionObject& object, Colour colour, Drawing& drawing) {
  for (const ShapePart& part : meshes_->partsOf(*object.getCollisionShape())) {
    while (drawing.solids.size() <= part.mesh) {
      const std::size_t next = drawing.solids.size();
      drawing.solids.push_back({&(*meshes_)[next], generation_, {}});
    }
    drawing.solids[part.mesh].instances.push_back(
        instanceOf(object.getWorldTransform() * part.place, colour));
  }
}
