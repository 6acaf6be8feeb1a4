// SPDX-License-Identifier: Zlib
// Command-line parts that the samples share.
#include "support/command_line.h"

#include <fmt/format.h>

#include <map>
#include <new>

#include "broadphase/version.h"
#include "support/system.h"

namespace {

bool couldWriteOutput() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

constexpr const char* kNoOutput = "stdout: cannot be written";

/// One line. Not by fmt, which throws where stderr takes nothing.
int fail(const CLI::App& app, const char* what, int status) {
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), what);
  return status;
}

/// Turns every exception into one line and an exit status.
int runGuarded(CLI::App& app, int argc, char** argv, int (*body)(void*), void* context) {
  try {
    app.parse(argc, argv);
    return body(context);
  } catch (const CLI::ParseError& error) {
    // Success is how --help ends; it prints to stdout.
    return error.get_exit_code() == 0 ? app.exit(error) : fail(app, error.what(), 2);
  } catch (const UsageError& error) {
    return fail(app, error.what(), 2);
  } catch (const FileError& error) {
    return fail(app, error.what(), 2);
  } catch (const std::bad_alloc&) {
    return fail(app, "out of memory", 1);
  } catch (const std::exception& error) {
    return fail(app, error.what(), 1);
  }
}

}  // namespace

void addFinderOptions(CLI::App& app, lbvh::Options& options) {
  static const std::map<std::string, lbvh::Backend> backends = {
      {"auto", lbvh::Backend::automatic},
      {"host", lbvh::Backend::host},
      {"cuda", lbvh::Backend::cuda},
  };
  app.add_option_function<std::string>(
         "--backend", [&options](const std::string& name) { options.backend = backends.at(name); },
         "where to find the pairs: auto, host or cuda")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->type_name("NAME")
      ->default_str("auto");
  app.add_option("--threads", options.threads, "host threads; 0 = all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void requireBackend(const lbvh::Options& options, bool isUsed) {
  if (!isUsed && options.backend == lbvh::Backend::cuda)
    throw UsageError("--backend cuda: no broad phase was chosen that could run on it");
  if (!isUsed) return;
  const std::string reason = lbvh::whyUnavailable(options.backend);
  if (!reason.empty()) throw UsageError(reason);
}

CLI::Validator notEmpty() {
  return {[](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); }, ""};
}

void warnIfCutOff(const BoxReader& reader, const std::string& path) {
  if (reader.frames() < reader.promised())
    fmt::print(stderr, "{}: cut off; it has {} of the {} frames that its header promises\n", path,
               reader.frames(), reader.promised());
}

void flushOutput() {
  if (!couldWriteOutput()) throw std::runtime_error(kNoOutput);
}

int runProgram(CLI::App& app, int argc, char** argv, int (*body)(void*), void* context) {
  app.allow_windows_style_options(false);  // /scene.aabb is a file there, too
  app.set_version_flag("--version",
                       fmt::format("{} (GpuLbvhBroadphase) {}", app.get_name(), lbvh::version()),
                       "Print the version and exit");
  if (!openStandardStreams()) return fail(app, "stdout is closed", 1);
  const int status = runGuarded(app, argc, argv, body, context);
  if (status != 0) return status;
  if (!couldWriteOutput()) return fail(app, kNoOutput, 1);
  if (const int signal = interruption()) return fail(app, "interrupted", 128 + signal);
  return 0;
}
