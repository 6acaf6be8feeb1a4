// SPDX-License-Identifier: Zlib
// Checks before a run whether the requested output files can be written. Does not truncate them.
#pragma once

#include <string>
#include <vector>

struct OutputFile {
  const char* option;  ///< the option that names it, for messages
  std::string path;    ///< empty: not requested
};

/// Checks whether all files can be written. Changes no file, and leaves no new file.
/// @throws FileError if one of them cannot be written
/// @throws UsageError if two of them are the same file
void requireWritable(const std::vector<OutputFile>& files);
