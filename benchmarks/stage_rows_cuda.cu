// SPDX-License-Identifier: Zlib
#define GPULBVH_STAGE_ROWS_BODY
#include "benchmarks/catalogue/find_production.cuh"
#include "broadphase/cuda/step.h"
#include "stage_rows.h"

StageTable stagesOnCuda(lbvh::View<const lbvh::Aabb> boxes, int rounds) {
  cudaDeviceSetLimit(cudaLimitStackSize, 1 << 14);  // for recursion
  stage_rows::Workbench<lbvh::variants::CatalogueCuda> bench;
  StageTable table = stage_rows::measure(bench, boxes, rounds);
  table.space = lbvh::cudaDeviceName();
  return table;
}
