// SPDX-License-Identifier: Zlib
// The command line and the error handling that the samples share.
#include "support/command_line.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <map>
#include <new>
#include <optional>
#include <sstream>

#include "broadphase/version.h"
#include "support/system.h"

namespace {

bool couldWriteOutput() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

constexpr const char* kNoOutput = "stdout: cannot be written";

/// Prints one line. Does not use fmt, which throws if stderr cannot be written.
int fail(const CommandLine& line, const char* what, int status) {
  std::fprintf(stderr, "%s: %s\n", line.name().c_str(), what);
  return status;
}

/// Turns every exception into one line and an exit status.
int runGuarded(CommandLine& line, int argc, char** argv, const std::function<int()>& body) {
  try {
    const std::string text = line.parse(argc, argv);
    if (text.empty()) return body();
    std::fputs(text.c_str(), stdout);
    return 0;
  } catch (const UsageError& error) {
    return fail(line, error.what(), 2);
  } catch (const FileError& error) {
    return fail(line, error.what(), 2);
  } catch (const std::bad_alloc&) {
    return fail(line, "out of memory", 1);
  } catch (const std::exception& error) {
    return fail(line, error.what(), 1);
  }
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::range(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::range(std::uint32_t least, std::uint32_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::oneOf(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option& Option::notEmpty() {
  const auto whyNot = [](const std::string& text) {
    return std::string(text.empty() ? "is empty" : "");
  };
  option_->check(CLI::Validator(whyNot, ""));
  return *this;
}

Option& Option::list() {
  option_->delimiter(',');
  return *this;
}

Option& Option::count(int values) {
  option_->expected(values);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::showDefault() {
  option_->capture_default_str();
  return *this;
}

Option& Option::group(const char* name) {
  option_->group(name);
  return *this;
}

CommandLine::CommandLine(const char* description, const char* name)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->allow_windows_style_options(false);  // on Windows, too, /scene.aabb is a file
}

CommandLine::~CommandLine() = default;

template <class T>
Option CommandLine::add(const char* name, T& value, const char* help) {
  return Option(app_->add_option(name, value, help));
}

template Option CommandLine::add(const char*, int&, const char*);
template Option CommandLine::add(const char*, std::uint32_t&, const char*);
template Option CommandLine::add(const char*, float&, const char*);
template Option CommandLine::add(const char*, double&, const char*);
template Option CommandLine::add(const char*, std::string&, const char*);
template Option CommandLine::add(const char*, std::optional<int>&, const char*);
template Option CommandLine::add(const char*, std::optional<std::uint32_t>&, const char*);
template Option CommandLine::add(const char*, std::vector<int>&, const char*);
template Option CommandLine::add(const char*, std::vector<double>&, const char*);
template Option CommandLine::add(const char*, std::vector<std::string>&, const char*);

Option CommandLine::addFlag(const char* name, bool& value, const char* help) {
  return Option(app_->add_flag(name, value, help));
}

void CommandLine::addFinder(lbvh::Options& options) {
  static const std::map<std::string, lbvh::Backend> backends = {
      {"auto", lbvh::Backend::automatic},
      {"host", lbvh::Backend::host},
      {"cuda", lbvh::Backend::cuda},
  };
  app_->add_option_function<std::string>(
          "--backend", [&options](const std::string& name) { options.backend = backends.at(name); },
          "where to find the pairs: auto, host or cuda")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->type_name("NAME")
      ->default_str("auto");
  app_->add_option("--threads", options.threads, "host threads; 0 = all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void CommandLine::addHierarchy(lbvh::Options& options) {
  static const std::map<std::string, lbvh::Hierarchy> hierarchies = {
      {"wide", lbvh::Hierarchy::wide},
      {"binary", lbvh::Hierarchy::binary},
  };
  app_->add_option_function<std::string>(
          "--hierarchy",
          [&options](const std::string& name) { options.hierarchy = hierarchies.at(name); },
          "hierarchy in which to find the pairs: wide or binary")
      ->check(CLI::IsMember({"wide", "binary"}))
      ->type_name("NAME")
      ->default_str("wide");
}

void CommandLine::footer(const std::string& text) { app_->footer(text); }

const std::string& CommandLine::name() const { return app_->get_name(); }

std::string CommandLine::parse(int argc, char** argv) {
  app_->set_version_flag("--version",
                         fmt::format("{} (GpuLbvhBroadphase) {}", name(), lbvh::version()),
                         "Print the version and exit");
  try {
    app_->parse(argc, argv);
    return {};
  } catch (const CLI::ParseError& error) {
    // --help and --version end with a ParseError whose exit code is 0.
    if (error.get_exit_code() != 0) throw UsageError(error.what());
    std::ostringstream text;
    app_->exit(error, text, text);
    return text.str();
  }
}

void requireBackend(const lbvh::Options& options, bool isUsed) {
  if (!isUsed && options.backend == lbvh::Backend::cuda)
    throw UsageError("--backend cuda: no broad phase was chosen that could run on it");
  if (!isUsed) return;
  const std::string reason = lbvh::whyUnavailable(options.backend, options.device);
  if (!reason.empty()) throw UsageError(reason);
}

void warnIfCutOff(const BoxReader& reader, const std::string& path) {
  if (reader.frames() < reader.promised())
    fmt::print(stderr, "{}: cut off; it has {} of the {} frames that its header promises\n", path,
               reader.frames(), reader.promised());
}

void flushOutput() {
  if (!couldWriteOutput()) throw std::runtime_error(kNoOutput);
}

int runProgram(CommandLine& line, int argc, char** argv, const std::function<int()>& body) {
  if (!openStandardStreams()) return fail(line, "stdout is closed", 1);
  const int status = runGuarded(line, argc, argv, body);
  if (status != 0) return status;
  if (!couldWriteOutput()) return fail(line, kNoOutput, 1);
  if (const int signal = interruption()) return fail(line, "interrupted", 128 + signal);
  return 0;
}
