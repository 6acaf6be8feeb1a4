// SPDX-License-Identifier: Zlib
// Functions of the operating system, implemented in system_posix.cpp and system_windows.cpp.
#pragma once

#include <string>

double peakMemoryMb();  ///< maximum memory of this process so far, in MiB
double memoryGib();     ///< memory of the machine, in GiB
std::string processorName();
std::string systemName();
double threadMilliseconds();  ///< CPU time of the calling thread so far
bool hasTerminal();           ///< whether stderr is a terminal

/// Whether a pipe or a device may be opened for writing. Does not open it.
bool mayBeWritten(const std::string& path);

/// Opens stdin, stdout and stderr if they are closed. Otherwise the next opened file could get the
/// number of stdout, and printed text would go into that file.
/// @return whether stdout was open
bool openStandardStreams();

/// From now on the first SIGINT (Ctrl-C) or SIGTERM only changes the result of interruption(). A
/// long run can call that function between two steps, and complete its files before it ends. A
/// second signal ends the process as usual.
void catchInterruptions();

/// The number of the received signal; 0 if none was received.
int interruption();
