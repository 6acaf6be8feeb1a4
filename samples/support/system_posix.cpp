// SPDX-License-Identifier: Zlib
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support/system.h"

namespace {

volatile std::sig_atomic_t caught = 0;

}  // namespace

double peakMemoryMb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return double(usage.ru_maxrss) / (1 << 20);  // macOS counts bytes, other systems KiB
#else
  return double(usage.ru_maxrss) / (1 << 10);
#endif
}

double memoryGib() {
  return double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)) / (1 << 30);
}

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");  // Linux
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

std::string systemName() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return std::string(name.sysname) + " " + name.release + ", " + name.machine;
}

double threadMilliseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
}

bool hasTerminal() { return isatty(STDERR_FILENO) != 0; }

bool mayBeWritten(const std::string& path) { return access(path.c_str(), W_OK) == 0; }

bool openStandardStreams() {
  bool hasOutput = true;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    if (stream == STDOUT_FILENO) hasOutput = false;
    open("/dev/null", O_RDWR);  // gets the lowest free descriptor, which is that of this stream
  }
  return hasOutput;
}

void catchInterruptions() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { caught = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int interruption() { return caught; }
