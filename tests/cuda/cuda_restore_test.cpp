// SPDX-License-Identifier: Zlib
// Tests on a GPU that a restored world continues with the same pairs in the same order.
#include "cuda_fixture.h"
#if defined(HAS_SCENES)
#include "saved_worlds.h"

namespace lbvh {
namespace {

using namespace saved_worlds;

class CudaRestore : public test::OnCuda {};

TEST_F(CudaRestore, RestoredWorldsContinueWithTheSamePairsInTheSameOrder) {
  std::vector<Recorded> all;
  for (const Scene& scene : scenes()) all.emplace_back(scene, 60);
  Random random(51);
  for (std::size_t tried = 0; tried < 20; ++tried)
    restoreAndGoOn(randomOptions(Backend::cuda, random), all[tried % all.size()],
                   all[tried / 7 % all.size()], random);
  test::forceSkin("automatic");
}

}  // namespace
}  // namespace lbvh
#endif
