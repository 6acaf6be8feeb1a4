// replay: finds the pairs of recorded boxes, frame by frame, and prints count, hash and times.
// Compares with the .ref beside the file, if there is one. POSIX, for the peak of memory.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "box_finders.h"
#include "command_line.h"
#include "recorded_boxes.h"
#include "timing.h"

namespace {

struct Settings {
  std::string file;
  std::string finder = "core";
  lbvh::Options options;
  std::optional<std::uint32_t> frames;
  bool stages = false;
};

double peakMemoryMb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return double(usage.ru_maxrss) / (1 << 20);  // bytes there, KiB elsewhere
#else
  return double(usage.ru_maxrss) / (1 << 10);
#endif
}

/// The reference, if it can be compared with; says so if it cannot.
Reference usableReference(const Settings& settings) {
  const std::string path = referencePath(settings.file);
  Reference reference = readReference(path);
  if (!reference.empty() && !findsExactly(settings.finder)) {
    fmt::print(stderr, "replay: {} finds more pairs than overlap; not compared with {}\n",
               settings.finder, path);
    reference.clear();
  }
  return reference;
}

/// Whether a frame agrees with the reference, or the reference does not have it.
bool agrees(const Reference& reference, std::uint32_t frame, const PairHash& found) {
  const auto expected = reference.find(frame);
  if (expected == reference.end() || expected->second == found) return true;
  fmt::print(stderr, "replay: frame {} has {} pairs, hash {:016x}; the reference has {}, {:016x}\n",
             frame, found.pairs(), found.hash(), expected->second.pairs(), expected->second.hash());
  return false;
}

/// The stages of a step, by the names they are printed with.
struct Stage {
  const char* name;
  double lbvh::StepStats::*ms;
};
constexpr Stage kStages[] = {
    {"bounds", &lbvh::StepStats::boundsMs},       {"codes", &lbvh::StepStats::codesMs},
    {"sort", &lbvh::StepStats::sortMs},           {"hierarchy", &lbvh::StepStats::hierarchyMs},
    {"traversal", &lbvh::StepStats::traversalMs}, {"pair_sort", &lbvh::StepStats::pairSortMs},
    {"delta", &lbvh::StepStats::deltaMs},
};

/// Medians a frame; on a GPU by its own clock.
void printStages(const std::vector<lbvh::StepStats>& frames) {
  fmt::print("stages");
  for (const Stage& stage : kStages) {
    std::vector<double> values;
    for (const lbvh::StepStats& frame : frames) values.push_back(frame.*stage.ms);
    fmt::print(" {}_ms={:.4f}", stage.name, median(values));
  }
  fmt::print("\n");
}

struct Times {
  std::vector<double> update;
  std::vector<double> find;
  std::vector<double> total;
  std::vector<lbvh::StepStats> stages;
};

/// One frame: checking and hashing are not timed.
PairHash replayFrame(BoxFinder& finder, const std::vector<lbvh::Aabb>& boxes, Times& times) {
  const Stopwatch total;
  finder.setBoxes(boxes);
  times.update.push_back(total.milliseconds());
  const Stopwatch find;
  finder.find();
  times.find.push_back(find.milliseconds());
  times.total.push_back(total.milliseconds());
  if (const lbvh::StepStats* stats = finder.stats()) times.stages.push_back(*stats);
  return finder.pairs();
}

int replay(const Settings& settings) {
  if (settings.finder == "core" || settings.finder == "gpu-lbvh") requireBackend(settings.options);
  BoxReader reader(settings.file);
  const Reference reference = usableReference(settings);
  const std::uint32_t frames = std::min(reader.frames(), settings.frames.value_or(reader.frames()));
  std::vector<lbvh::Aabb> boxes;
  const auto readFrame = [&] {
    reader.read(boxes);
    requireBoxes(settings.finder, boxes, settings.file);
  };
  if (frames > 0) readFrame();
  const auto finder = makeBoxFinder(settings.finder, settings.options, boxes);

  Times times;
  bool allAgree = true;
  for (std::uint32_t frame = 0; frame < frames && allAgree; ++frame) {
    if (frame > 0) readFrame();
    const PairHash found = replayFrame(*finder, boxes, times);
    fmt::print("frame={} pairs={} hash={:016x} update_ms={:.3f} find_ms={:.3f}\n", frame,
               found.pairs(), found.hash(), times.update.back(), times.find.back());
    allAgree = agrees(reference, frame, found);
  }
  if (settings.stages && !times.stages.empty()) printStages(times.stages);
  const Space space = finder->space();
  fmt::print(
      "summary broadphase={} backend={} threads={} objects={} frames={} median_update_ms={:.3f} "
      "median_find_ms={:.3f} median_total_ms={:.3f} peak_rss_mb={:.1f}\n",
      settings.finder, space.word, space.threads, reader.objects(), times.total.size(),
      median(times.update), median(times.find), median(times.total), peakMemoryMb());
  return allAgree ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Finds the overlapping pairs of recorded boxes, frame by frame.", "replay");
  app.add_option("FILE", settings.file, "recorded boxes, .aabb; a .ref beside it is compared with")
      ->required();
  app.add_option("--broadphase", settings.finder,
                 "core: the library alone; the others through Bullet's interface")
      ->check(CLI::IsMember(boxFinderNames()))
      ->capture_default_str();
  app.add_option("--frames", settings.frames, "at most so many frames; default: all");
  app.add_flag("--stages", settings.stages,
               "print the median of each stage, for core and gpu-lbvh");
  addFinderOptions(app, settings.options);
  return runProgram(app, argc, argv, [&settings] {
    settings.options.stageTimes = settings.stages;
    return replay(settings);
  });
}
