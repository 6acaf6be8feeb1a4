// What the samples' command lines share: the options of a finder, and one way to fail.
// An error is one line on stderr; status 2 for a wrong call or file, 1 for what failed in a run.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "broadphase/pair_finder.h"

/// A call that cannot be done as asked.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Adds --backend and --threads.
void addFinderOptions(CLI::App& app, lbvh::Options& options);

/// @throws UsageError if the backend that was asked for cannot be had here
void requireBackend(const lbvh::Options& options);

/// Parses, then calls `body`, and turns every exception into one line and an exit status.
int runProgram(CLI::App& app, int argc, char** argv, int (*body)(void*), void* context);

template <class Body>
int runProgram(CLI::App& app, int argc, char** argv, Body body) {
  return runProgram(
      app, argc, argv, [](void* context) { return (*static_cast<Body*>(context))(); }, &body);
}
