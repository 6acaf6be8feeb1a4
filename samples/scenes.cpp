// The table of scenes. Each scene is in its own scene_*.cpp.
#include "scenes.h"

#include <cstring>

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> table = {
      {"debris", "12,486 pieces fall from the walls of a corridor: many pairs, all moving", 12486,
       buildDebris},
      {"pile", "boxes and spheres fall on a heap in a pit: dense contacts that come to rest", 4000,
       buildPile},
      {"rain", "five kinds of shapes fall on a mesh: few pairs, and a static box over all", 4000,
       buildRain},
      {"stack", "pyramids and towers that stay standing: pairs that must not be lost", 1040,
       buildStack},
  };
  return table;
}

const Scene* findScene(const char* name) {
  for (const Scene& scene : scenes()) {
    if (std::strcmp(scene.name, name) == 0) return &scene;
  }
  return nullptr;
}
