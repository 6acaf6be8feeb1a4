// Command-line parts that the samples share.
#include "command_line.h"

#include <fmt/format.h>

#include <map>
#include <new>

#include "recorded_boxes.h"

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

void requireBackend(const lbvh::Options& options) {
  const std::string reason = lbvh::whyUnavailable(options.backend);
  if (!reason.empty()) throw UsageError(reason);
}

int runProgram(CLI::App& app, int argc, char** argv, int (*body)(void*), void* context) {
  const auto fail = [&app](const char* what, int status) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), what);
    return status;
  };
  try {
    app.parse(argc, argv);
    return body(context);
  } catch (const CLI::ParseError& error) {
    // Success is how --help ends; it prints to stdout.
    return error.get_exit_code() == 0 ? app.exit(error) : fail(error.what(), 2);
  } catch (const UsageError& error) {
    return fail(error.what(), 2);
  } catch (const FileError& error) {
    return fail(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", 1);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}
