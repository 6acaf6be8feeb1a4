// SPDX-License-Identifier: Zlib
// What the samples' command lines share: the options of a finder, and one way to fail.
// Each has --help and --version. An error is one line on stderr. The exit status is 2 for a wrong
// command line or file, and 1 for a failure in the run, output to stdout included. An interrupted
// run ends with 128 plus the signal's number.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "broadphase/pair_finder.h"
#include "support/recorded_boxes.h"

/// A command line that cannot be carried out.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Adds --backend and --threads.
void addFinderOptions(CLI::App& app, lbvh::Options& options);

/// @param isUsed whether anything will run on the backend
/// @throws UsageError if the chosen backend is not available here, or nothing would run on it
void requireBackend(const lbvh::Options& options, bool isUsed = true);

/// For Option::check of a value that must not be empty, such as the name of a file.
CLI::Validator notEmpty();

/// Says on stderr if the file has fewer frames than its header promises.
void warnIfCutOff(const BoxReader& reader, const std::string& path);

/// Writes what was printed so far, before a long run.
/// @throws std::runtime_error if stdout takes no more
void flushOutput();

/// Adds --version and parses, then calls `body`, and turns every exception into one line and an
/// exit status.
int runProgram(CLI::App& app, int argc, char** argv, int (*body)(void*), void* context);

template <class Body>
int runProgram(CLI::App& app, int argc, char** argv, Body body) {
  return runProgram(
      app, argc, argv, [](void* context) { return (*static_cast<Body*>(context))(); }, &body);
}
