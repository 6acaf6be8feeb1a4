// SPDX-License-Identifier: Zlib
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
// The headers below need windows.h before them:
#include <io.h>
#include <psapi.h>

#include <csignal>
#include <cstdio>

#include "support/system.h"

namespace {

volatile std::sig_atomic_t caught = 0;

/// A string in the registry under HKEY_LOCAL_MACHINE.
std::string registered(const char* key, const char* name) {
  char text[256];
  DWORD size = sizeof text;
  const LSTATUS status =
      RegGetValueA(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_SZ, nullptr, text, &size);
  return status == ERROR_SUCCESS ? text : "unknown";
}

}  // namespace

double peakMemoryMb() {
  PROCESS_MEMORY_COUNTERS counters{};
  K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
  return double(counters.PeakWorkingSetSize) / (1 << 20);
}

double memoryGib() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  GlobalMemoryStatusEx(&status);
  return double(status.ullTotalPhys) / (1 << 30);
}

std::string processorName() {
  return registered("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", "ProcessorNameString");
}

std::string systemName() {
  constexpr const char* kVersion = "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion";
  return "Windows, build " + registered(kVersion, "CurrentBuildNumber");
}

double threadMilliseconds() {
  FILETIME start, end, kernel, user;
  GetThreadTimes(GetCurrentThread(), &start, &end, &kernel, &user);
  const auto units = [](const FILETIME& time) {  // the time in units of 100 ns
    return double(time.dwHighDateTime) * 4294967296.0 + double(time.dwLowDateTime);
  };
  return (units(kernel) + units(user)) * 1e-4;
}

bool hasTerminal() { return _isatty(_fileno(stderr)) != 0; }

bool mayBeWritten(const std::string& path) { return _access(path.c_str(), 2) == 0; }

// On Windows no other file can get the number of a closed stream, so nothing needs to be opened.
bool openStandardStreams() { return _fileno(stdout) >= 0; }

// Windows resets a signal's handler before it calls the handler, so a second signal ends the
// process.
void catchInterruptions() {
  constexpr auto remember = [](int signal) { caught = signal; };
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

int interruption() { return caught; }
