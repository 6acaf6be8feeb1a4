# SPDX-License-Identifier: Zlib
# What is installed, and what the API reference tells of. Paths from the root.
set(GPULBVH_CORE_HEADERS
  broadphase/device_pair_finder.h
  broadphase/device_query.h
  broadphase/device_scene.h
  broadphase/export.h
  broadphase/options.h
  broadphase/pair_finder.h
  broadphase/ray_test.h
  broadphase/tree_query.h
  broadphase/types.h
  broadphase/version.h)
# What programs include, by <gpulbvh/...>: each includes one of the others.
set(GPULBVH_WAYS_IN ${GPULBVH_CORE_HEADERS})
list(REMOVE_ITEM GPULBVH_WAYS_IN broadphase/export.h)
list(TRANSFORM GPULBVH_WAYS_IN REPLACE broadphase/ include/gpulbvh/)
# Where some of them were in 0.2.0.
set(GPULBVH_FORMER_QUERY_HEADERS
  broadphase/query/device_query.h
  broadphase/query/ray_test.h
  broadphase/query/tree_query.h)
set(GPULBVH_BULLET_HEADERS
  integration/GpuLbvhBroadphase.h
  integration/migrateBroadphase.h)
set(GPULBVH_BULLET_WAYS_IN include/GpuLbvhBroadphase.h include/migrateBroadphase.h)
set(GPULBVH_PUBLIC_HEADERS ${GPULBVH_CORE_HEADERS} ${GPULBVH_BULLET_HEADERS})
