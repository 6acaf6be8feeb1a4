// SPDX-License-Identifier: Zlib
// What the programs ask of the system: system_posix.cpp or system_windows.cpp answers.
#pragma once

#include <string>

double peakMemoryMb();  ///< of this process so far, in MiB
double memoryGib();     ///< of the machine
std::string processorName();
std::string systemName();
double threadMilliseconds();  ///< that the calling thread has spent on a core so far
bool hasTerminal();           ///< whether stderr is one

/// Whether a pipe or a device may be opened for writing. Does not open it.
bool mayBeWritten(const std::string& path);

/// Opens those of stdin, stdout and stderr that are closed. Else the next file would get the
/// number of one of them, and with it what is printed.
/// @return whether stdout was open
bool openStandardStreams();

/// From now on the first SIGINT (Ctrl-C) or SIGTERM only changes what interruption() says. So a
/// long run can ask between two steps, and finish its files first. The second one ends the process,
/// as it would have without this call.
void catchInterruptions();

/// The signal that came; 0: none.
int interruption();
