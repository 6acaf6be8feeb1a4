# SPDX-License-Identifier: Zlib
"""Drops boxes on a plate with Siconos, which finds their contacts with Bullet. Does not name our broad phase.

Usage: siconos_boxes.py BOXES      prints the number of contacts and the mean height; on stderr, milliseconds of a step"""
import statistics
import sys
import time

import siconos.kernel as kernel
from siconos.mechanics.collision.base import RigidBodyDS, SiconosBox, SiconosContactor, SiconosContactorSet
from siconos.mechanics.collision.bullet import SiconosBulletCollisionManager, SiconosBulletOptions


def contactors(*size):
    made = SiconosContactorSet()
    made.append(SiconosContactor(SiconosBox(*size)))
    return made


manager = SiconosBulletCollisionManager(SiconosBulletOptions())
manager.insertNonSmoothLaw(kernel.NewtonImpactFrictionNSL(0, 0, 0.5, 3), 0, 0)
plate = contactors(100, 100, 1)
manager.insertStaticContactorSet(plate, [0, 0, -0.5])
system = kernel.NonSmoothDynamicalSystem(0, 1)
boxes = []
for i in range(int(sys.argv[1])):
    box = RigidBodyDS([i % 10, i // 10 % 10, 0.51 + 1.05 * (i // 100), 1, 0, 0, 0], [0] * 6, 1)
    box.setContactors(contactors(0.8, 0.8, 1))
    box.setFExtPtr([0, 0, -9.81])
    system.insertDynamicalSystem(box)
    boxes.append(box)
simulation = kernel.TimeStepping(system, kernel.TimeDiscretisation(0, 0.005))
simulation.insertIntegrator(kernel.MoreauJeanOSI(0.5))
simulation.insertNonSmoothProblem(kernel.FrictionContact(3))
simulation.insertInteractionManager(manager)
times = []
for _ in range(40):
    begun = time.perf_counter()
    simulation.computeOneStep()
    simulation.nextStep()
    times.append(1000 * (time.perf_counter() - begun))
print(f"{system.getNumberOfInteractions()} contacts, mean height {statistics.fmean(box.q()[2] for box in boxes):.6f}")
print(f"a step: mean {statistics.fmean(times):.2f}, longest {max(times):.2f} ms", file=sys.stderr)
