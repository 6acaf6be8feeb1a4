// Reads what the system and the compiler tell; see the header. Where there is no /proc, less.
#include "report/machine.h"

#include <LinearMath/btScalar.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "broadphase/pair_finder.h"
#include "revision.h"

namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

double memoryGib() {
  return double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)) / (1 << 30);
}

std::string compiler() {
#if defined(__clang__)
  return __VERSION__;
#elif defined(__GNUC__)
  return std::string("GCC ").append(__VERSION__);
#else
  return "unknown";
#endif
}

std::string system() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {}, {}", name.sysname, name.release, name.machine);
}

std::string instructions() {
  lbvh::Options options;
  options.backend = lbvh::Backend::host;
  return lbvh::PairFinder(options).stats().instructions;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> machineFacts() {
  return {
      {"Commit", GPULBVH_REVISION},
      {"Processor",
       fmt::format("{}, {} hardware threads", processor(), std::thread::hardware_concurrency())},
      {"Memory", fmt::format("{:.0f} GiB", memoryGib())},
      {"System", system()},
      {"Compiler", fmt::format("{}, build type {}", compiler(), GPULBVH_BUILD_TYPE)},
      {"Bullet", fmt::format("{}.{}, {} precision", btGetVersion() / 100, btGetVersion() % 100,
                             sizeof(btScalar) == sizeof(double) ? "double" : "single")},
      {"SIMD on the host", instructions()},
  };
}
