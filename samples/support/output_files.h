// SPDX-License-Identifier: Zlib
// Checks the files that a program is asked to write, before it runs. Does not truncate any.
#pragma once

#include <string>
#include <vector>

struct OutputFile {
  const char* option;  ///< the option that names it, for messages
  std::string path;    ///< empty: not wanted
};

/// Changes no file, and leaves no new one behind.
/// @throws FileError if one of them cannot be written
/// @throws UsageError if two of them are the same file
void requireWritable(const std::vector<OutputFile>& files);
