# SPDX-License-Identifier: Zlib
"""Drops a thousand cubes on a plane in PyBullet. Does not name our broad phase.

Usage: cubes.py [STEPS]     prints key=value words:
contacts, height, deepest   number of contacts, mean height and deepest contact after the last step
left                        contacts that a cube still has after it was put far away
mean_ms, median_ms, max_ms  milliseconds of a step
cpu_ms                      mean milliseconds of a step, summed over all cores"""
import statistics
import sys
import time

import pybullet as p

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
p.connect(p.DIRECT)
p.setGravity(0, 0, -10)
p.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
p.createMultiBody(0, p.createCollisionShape(p.GEOM_PLANE))
shape = p.createCollisionShape(p.GEOM_BOX, halfExtents=[0.5] * 3)
cubes = [p.createMultiBody(1, shape, basePosition=[1.1 * (i % 10), 1.1 * (i // 10 % 10), 0.6 + 1.1 * (i // 100)])
         for i in range(1000)]
times = []
on_cores = time.process_time()
for _ in range(steps):
    begun = time.perf_counter()
    p.stepSimulation()
    times.append(1000 * (time.perf_counter() - begun))
on_cores = 1000 * (time.process_time() - on_cores) / steps
contacts = p.getContactPoints()
height = statistics.fmean(p.getBasePositionAndOrientation(cube)[0][2] for cube in cubes)
lowest = min(cubes, key=lambda cube: p.getBasePositionAndOrientation(cube)[0][2])
p.resetBasePositionAndOrientation(lowest, [0, 0, 500], [0, 0, 0, 1])
p.stepSimulation()
left = len(p.getContactPoints(lowest))
print(f"contacts={len(contacts)} height={height:.6f} deepest={min(c[8] for c in contacts):.4f} left={left} "
      f"mean_ms={statistics.fmean(times):.3f} median_ms={statistics.median(times):.3f} max_ms={max(times):.3f} cpu_ms={on_cores:.3f}")
