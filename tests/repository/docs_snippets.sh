#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Compiles the C++ snippets of docs/integration.md and docs/device.md, each as the body of a function of
# a program that has what Bullet's programs have, or those that keep their boxes on a GPU. Usage: docs_snippets.sh ROOT COMPILER [FLAGS...]
set -euo pipefail
root=$1
shift
source=$(mktemp --suffix=.cpp)
trap 'rm -f "$source"' EXIT
cat >"$source" <<'EOF'
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <GpuLbvhBroadphase.h>
#include <gpulbvh/device_pair_finder.h>
#include <gpulbvh/pair_finder.h>
#include <gpulbvh/tree_query.h>
#include <btBulletDynamicsCommon.h>
#include <migrateBroadphase.h>

#include <cstdio>
#include <vector>

struct Program {
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher{&configuration};
  btSequentialImpulseConstraintSolver solver;
  GpuLbvhBroadphase broadphase;
  btDiscreteDynamicsWorld world{&dispatcher, &broadphase, &solver, &configuration};
  btOverlapFilterCallback& filter;
EOF

# functions PAGE: its snippets as members of the struct that is open.
functions() {
  awk '/^```cpp$/ { printf "  void snippet%d() {\n", ++n; inside = 1; next }
       /^```$/ && inside { print "  }"; inside = 0 }
       inside
       END { exit n == 0 }' "$root/docs/$1" >>"$source"
}
functions integration.md
cat >>"$source" <<'EOF'
};

struct Body {
  float lower[3], upper[3], velocity[3];
};
struct Engine {
  lbvh::DevicePairFinder finder;
  std::size_t capacity;
  const std::uint32_t *deviceCount, *deviceWorlds, *deviceRayWorlds;
  const Body* deviceBodies;
  const lbvh::Ray* deviceRays;
  lbvh::RayHit* deviceHits;
  lbvh::DeviceScene scene;
  lbvh::DeviceRequest request;
  CUstream_st* stream;
EOF
functions device.md
echo "};" >>"$source"
# What a snippet gets, it need not use.
"$@" -Wno-unused-variable -Wno-unused-but-set-variable -std=c++17 -fsyntax-only "$source"
