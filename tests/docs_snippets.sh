#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Compiles the C++ snippets of docs/integration.md, each as the body of a function of a program that
# has what Bullet's programs have. Usage: docs_snippets.sh ROOT COMPILER [FLAGS...]
set -euo pipefail
root=$1
shift
source=$(mktemp --suffix=.cpp)
trap 'rm -f "$source"' EXIT
cat >"$source" <<'EOF'
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <GpuLbvhBroadphase.h>
#include <broadphase/pair_finder.h>
#include <broadphase/query/tree_query.h>
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
awk '/^```cpp$/ { printf "  void snippet%d() {\n", ++n; inside = 1; next }
     /^```$/ && inside { print "  }"; inside = 0 }
     inside' "$root/docs/integration.md" >>"$source"
echo "};" >>"$source"
grep -c 'void snippet' "$source" | grep -qv '^0$'
"$@" -std=c++17 -fsyntax-only "$source"
