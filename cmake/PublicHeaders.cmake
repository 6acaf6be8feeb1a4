# SPDX-License-Identifier: Zlib
# Lists the headers that are installed and that the API reference describes. Paths are relative to
# the root folder.
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
# Programs include these headers as <gpulbvh/...>. Each of them includes one core header.
set(GPULBVH_WAYS_IN ${GPULBVH_CORE_HEADERS})
list(REMOVE_ITEM GPULBVH_WAYS_IN broadphase/export.h)
list(TRANSFORM GPULBVH_WAYS_IN REPLACE broadphase/ include/gpulbvh/)
# tree_query.h includes these headers. Programs should not include them.
set(GPULBVH_BLOCK_HEADERS
  broadphase/host/block_query.h
  broadphase/host/block_tree.h)
# Some headers had these paths in version 0.2.0.
set(GPULBVH_FORMER_QUERY_HEADERS
  broadphase/query/device_query.h
  broadphase/query/ray_test.h
  broadphase/query/tree_query.h)
set(GPULBVH_BULLET_HEADERS
  integration/GpuLbvhBroadphase.h
  integration/migrateBroadphase.h)
set(GPULBVH_BULLET_WAYS_IN include/GpuLbvhBroadphase.h include/migrateBroadphase.h)
set(GPULBVH_PUBLIC_HEADERS ${GPULBVH_CORE_HEADERS} ${GPULBVH_BULLET_HEADERS})
