// SPDX-License-Identifier: Zlib
// Runs Bullet's examples without a window. Replaces main.cpp of examples/ExampleBrowser in the
// user's checkout of Bullet. This source does not refer to our broad phase.
// Usage:
//   examples list              prints a line per example: number, a tab, name
//   examples NUMBER STEPS      prints a line per step: milliseconds, and a hash of all transforms
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "BulletDynamics/Dynamics/btDiscreteDynamicsWorld.h"
#include "BulletSoftBody/btSoftBody.h"
#include "CommonInterfaces/CommonGUIHelperInterface.h"
#include "CommonInterfaces/CommonParameterInterface.h"
#include "ExampleBrowser/ExampleEntries.h"
#include "LinearMath/btIDebugDraw.h"

namespace {

/// Window controls that never change a value.
struct NoParameters : CommonParameterInterface {
  void registerSliderFloatParameter(SliderParams&) override {}
  void registerButtonParameter(ButtonParams&) override {}
  void registerComboBox(ComboBoxParams&) override {}
  void syncParameters() override {}
  void removeAllParameters() override {}
  void setSliderValue(int, double) override {}
};

/// A debug drawer that draws nothing. Many examples use one without checking whether it exists.
struct NoDrawing : btIDebugDraw {
  void drawLine(const btVector3&, const btVector3&, const btVector3&) override {}
  void drawContactPoint(const btVector3&, const btVector3&, btScalar, int,
                        const btVector3&) override {}
  void reportErrorWarning(const char*) override {}
  void draw3dText(const btVector3&, const char*) override {}
  void setDebugMode(int) override {}
  int getDebugMode() const override { return DBG_NoDebug; }
};

/// Keeps the world that an example wants to draw.
struct Window : DummyGUIHelper {
  const btCollisionWorld* world = nullptr;
  NoParameters parameters;
  NoDrawing drawing;
  CommonParameterInterface* getParameterInterface() override { return &parameters; }
  void createPhysicsDebugDrawer(btDiscreteDynamicsWorld* drawn) override {
    world = drawn;
    drawn->setDebugDrawer(&drawing);
  }
  void autogenerateGraphicsObjects(btDiscreteDynamicsWorld* drawn) override { world = drawn; }
};

/// FNV-1a over the bytes of numbers.
struct Hash {
  std::uint64_t value = 0xcbf29ce484222325;
  bool isFinite = true;
  void add(const btVector3& place) {
    for (int axis = 0; axis < 3; ++axis) {
      unsigned char bytes[sizeof(btScalar)];
      std::memcpy(bytes, &place[axis], sizeof bytes);
      isFinite = isFinite && std::isfinite(place[axis]);
      for (const unsigned char byte : bytes) value = (value ^ byte) * 0x100000001b3;
    }
  }
};

/// Hashes the transforms of all objects and the nodes of soft bodies.
Hash hashOf(const btCollisionWorld* world) {
  Hash hash;
  if (world == nullptr) return hash;
  const btCollisionObjectArray& objects = world->getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i) {
    hash.add(objects[i]->getWorldTransform().getOrigin());
    for (int row = 0; row < 3; ++row) hash.add(objects[i]->getWorldTransform().getBasis()[row]);
    const btSoftBody* const soft = btSoftBody::upcast(objects[i]);
    if (soft == nullptr) continue;
    for (int node = 0; node < soft->m_nodes.size(); ++node) hash.add(soft->m_nodes[node].m_x);
  }
  return hash;
}

double milliseconds() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e3 * double(time.tv_sec) + 1e-6 * double(time.tv_nsec);
}

int list(ExampleEntriesAll& examples) {
  for (int i = 0; i < examples.getNumRegisteredExamples(); ++i)
    if (examples.getExampleCreateFunc(i) != nullptr)
      std::printf("%d\t%s\n", i, examples.getExampleName(i));
  return 0;
}

int run(ExampleEntriesAll& examples, int number, int steps) {
  std::srand(1);
  Window window;
  CommonExampleOptions options(&window, examples.getExampleOption(number));
  CommonExampleInterface* const example = examples.getExampleCreateFunc(number)(options);
  if (example == nullptr) return 3;
  example->initPhysics();
  for (int step = 0; step < steps; ++step) {
    const double begun = milliseconds();
    example->stepSimulation(1.f / 60);
    const double taken = milliseconds() - begun;
    const Hash hash = hashOf(window.world);
    std::printf("step %.4f %016" PRIx64 "%s\n", taken, hash.value, hash.isFinite ? "" : " nan");
  }
  std::printf("objects %d\n", window.world == nullptr ? 0 : window.world->getNumCollisionObjects());
  std::fflush(stdout);
  example->exitPhysics();
  delete example;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ExampleEntriesAll examples;
  examples.initExampleEntries();
  if (argc == 2 && std::strcmp(argv[1], "list") == 0) return list(examples);
  if (argc == 3) return run(examples, std::atoi(argv[1]), std::atoi(argv[2]));
  return 2;
}
