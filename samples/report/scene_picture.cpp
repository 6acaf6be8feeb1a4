// SPDX-License-Identifier: Zlib
// Draws the three visible faces of each box, from the farthest box to the nearest.
#include "report/scene_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "support/recorded_boxes.h"
#include "support/timing.h"

namespace {

constexpr double kPictureWidth =
    4800;  // in units of the picture; large, because coordinates are rounded to whole units
constexpr double kMargin = 60;
constexpr int kShades = 5;  // number of shades; a box's number of pairs selects its shade

struct PictureBox {
  lbvh::Aabb box;
  int pairs = 0;
};

struct Point {
  double x, y;
};

/// Projects along the diagonal of the horizontal axes, from 30 degrees above. The y axis points up
/// in the world, and down in the picture.
Point project(float x, float y, float z) {
  return {0.866 * (x - z), 0.5 * (x + z) - static_cast<double>(y)};
}

double longestSide(const lbvh::Aabb& box) {
  double side = 0;
  for (int axis = 0; axis < 3; ++axis)
    side = std::max(side, static_cast<double>(box.max[axis]) - box.min[axis]);
  return side;
}

double nearness(const lbvh::Aabb& box) {
  double sum = 0;
  for (int axis = 0; axis < 3; ++axis) sum += box.min[axis] + box.max[axis];
  return sum;
}

/// How many pairs of the cache each object is in.
std::vector<int> pairsByObject(World& world) {
  std::vector<int> counts(static_cast<std::size_t>(world.objects()));
  const auto add = [&](const btBroadphaseProxy* proxy) {
    const auto* object = static_cast<const btCollisionObject*>(proxy->m_clientObject);
    ++counts[static_cast<std::size_t>(object->getWorldArrayIndex())];
  };
  const auto& pairs = world.bullet().getPairCache()->getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i) {
    add(pairs[i].m_pProxy0);
    add(pairs[i].m_pProxy1);
  }
  return counts;
}

/// The boxes to draw, the farthest first.
std::vector<PictureBox> chosenBoxes(World& world) {
  const std::vector<lbvh::Aabb> boxes = world.boxes();
  const std::vector<int> pairs = pairsByObject(world);
  std::vector<double> sides;
  for (const lbvh::Aabb& box : boxes) sides.push_back(longestSide(box));
  const double longest = 10 * median(sides);
  std::vector<PictureBox> chosen;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    if (sides[i] <= longest) chosen.push_back({boxes[i], pairs[i]});
  std::stable_sort(chosen.begin(), chosen.end(), [](const PictureBox& a, const PictureBox& b) {
    return nearness(a.box) < nearness(b.box);
  });
  return chosen;
}

/// Maps the world to the picture.
class Canvas {
 public:
  explicit Canvas(const std::vector<PictureBox>& boxes) {
    Point low{1e30, 1e30}, high{-1e30, -1e30};
    for (const PictureBox& one : boxes) {
      const auto& [min, max] = one.box;
      for (const Point p : {project(min[0], min[1], max[2]), project(max[0], max[1], min[2]),
                            project(min[0], max[1], min[2]), project(max[0], min[1], max[2])}) {
        low = {std::min(low.x, p.x), std::min(low.y, p.y)};
        high = {std::max(high.x, p.x), std::max(high.y, p.y)};
      }
    }
    if (boxes.empty()) low = high = {0, 0};
    const double extent = std::max({high.x - low.x, high.y - low.y, 1e-6});
    scale_ = (kPictureWidth - 2 * kMargin) / extent;
    origin_ = low;
    size_ = {(high.x - low.x) * scale_ + 2 * kMargin, (high.y - low.y) * scale_ + 2 * kMargin};
  }

  Point size() const { return size_; }
  Point at(float x, float y, float z) const {
    const Point p = project(x, y, z);
    return {std::round(kMargin + (p.x - origin_.x) * scale_),
            std::round(kMargin + (p.y - origin_.y) * scale_)};
  }

 private:
  double scale_;
  Point origin_, size_;
};

/// The shade of a box with this number of pairs. It is 0 without pairs, 1 for one pair, and larger
/// by one for each doubling of the number, up to the last shade.
int shadeOf(int pairs) {
  int shade = 0;
  for (; pairs > 0 && shade < kShades - 1; pairs /= 2) ++shade;
  return shade;
}

std::string style() {
  // The colours go from grey-blue to dark orange. Top faces get the most light, and left faces the
  // least.
  constexpr int kColours[kShades][3] = {
      {176, 190, 204}, {150, 186, 196}, {228, 190, 120}, {222, 140, 70}, {178, 74, 44}};
  constexpr double kLight[] = {1.0, 0.84, 0.68};
  std::string css;
  for (int face = 0; face < 3; ++face)
    for (int shade = 0; shade < kShades; ++shade) {
      const auto light = [&](int k) { return static_cast<int>(kColours[shade][k] * kLight[face]); };
      css += fmt::format(".{}{}{{fill:rgb({},{},{})}}", "trl"[face], shade, light(0), light(1),
                         light(2));
    }
  return css;
}

/// Draws a parallelogram that is given by three successive corners.
void drawFace(std::ofstream& out, char face, int shade, Point a, Point b, Point c) {
  out << fmt::format("<path class=\"{}{}\" d=\"M{} {}l{} {} {} {} {} {}z\"/>\n", face, shade, a.x,
                     a.y, b.x - a.x, b.y - a.y, c.x - b.x, c.y - b.y, a.x - b.x, a.y - b.y);
}

void drawBox(std::ofstream& out, const Canvas& canvas, const PictureBox& one) {
  const auto& [min, max] = one.box;
  const int shade = shadeOf(one.pairs);
  const Point corner = canvas.at(max[0], max[1], max[2]);  // the nearest
  drawFace(out, 't', shade, canvas.at(min[0], max[1], max[2]), corner,
           canvas.at(max[0], max[1], min[2]));
  drawFace(out, 'r', shade, canvas.at(max[0], min[1], max[2]), corner,
           canvas.at(max[0], max[1], min[2]));
  drawFace(out, 'l', shade, canvas.at(max[0], min[1], max[2]), corner,
           canvas.at(min[0], max[1], max[2]));
}

}  // namespace

void writeScenePicture(const std::string& path, World& world) {
  const std::vector<PictureBox> boxes = chosenBoxes(world);
  const Canvas canvas(boxes);
  std::ofstream out(path, std::ios::binary);
  out << fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n"
      "<title>{2} boxes, darker with more overlapping pairs</title>\n"
      "<style>path{{stroke:#2b2f36;stroke-width:1.5;stroke-linejoin:round}}{3}</style>\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#f4f5f7\"/>\n",
      canvas.size().x, canvas.size().y, boxes.size(), style());
  for (const PictureBox& one : boxes) drawBox(out, canvas, one);
  out << "</svg>\n";
  out.close();
  if (!out) throw FileError(fmt::format("{}: cannot be written", path));
}
