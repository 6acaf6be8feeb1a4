// SPDX-License-Identifier: Zlib
// The command lines of the samples: options, common options of finders, and errors. Each program
// has --help and --version. An error is one line on stderr. The exit status is 2 for a wrong
// command line or file. It is 1 for a failure during the run, such as an error when writing to
// stdout. An interrupted run ends with 128 plus the signal's number. Only command_line.cpp includes
// the parsing library, because its headers take seconds to compile.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "broadphase/pair_finder.h"
#include "support/recorded_boxes.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// Thrown if a command line is wrong or cannot be executed.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An option of a command line. Its functions add properties, and return the option itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();
  /// Accepts only numbers from `least` to `most`.
  Option& range(int least, int most);
  Option& range(std::uint32_t least, std::uint32_t most);
  Option& range(double least, double most);
  Option& oneOf(const std::vector<std::string>& words);
  /// Refuses an empty value, for example as the name of a file.
  Option& notEmpty();
  /// Accepts several values, separated by commas.
  Option& list();
  /// Requires this number of values.
  Option& count(int values);
  Option& excludes(const Option& other);
  /// Shows the variable's current value in the help, as the default.
  Option& showDefault();
  /// Sets the heading under which the help lists the option.
  Option& group(const char* name);

 private:
  CLI::Option* option_;
};

/// The options and arguments of a program. A name without dashes defines a positional argument.
class CommandLine {
 public:
  CommandLine(const char* description, const char* name);
  ~CommandLine();

  /// T is int, uint32_t, float, double, string, optional<int>, optional<uint32_t>, or a vector of
  /// int, double or string. `value` must outlive this object.
  template <class T>
  Option add(const char* name, T& value, const char* help);
  Option addFlag(const char* name, bool& value, const char* help);
  /// Adds --backend and --threads.
  void addFinder(lbvh::Options& options);
  /// Adds --hierarchy, for programs that use a PairFinder.
  void addHierarchy(lbvh::Options& options);
  /// Sets a text below the help.
  void footer(const std::string& text);

  const std::string& name() const;
  /// @return the text of --help or --version, to be printed instead of a run; empty without them
  /// @throws UsageError if the command line is wrong
  std::string parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

/// @param isUsed whether the run will use the backend
/// @throws UsageError if the chosen backend is not available here, or if cuda is chosen but
///   `isUsed` is false
void requireBackend(const lbvh::Options& options, bool isUsed = true);

/// Prints a warning to stderr if the file has fewer frames than its header promises.
void warnIfCutOff(const BoxReader& reader, const std::string& path);

/// Flushes stdout before a long run.
/// @throws std::runtime_error if stdout cannot be written
void flushOutput();

/// Parses, then calls `body`, and turns every exception into one line and an exit status.
int runProgram(CommandLine& line, int argc, char** argv, const std::function<int()>& body);
