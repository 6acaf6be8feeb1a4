// SPDX-License-Identifier: Zlib
// Parts of HTML pages; see the header. The style sheet is in html_style.h.
#include "report/html_page.h"

#include <fmt/format.h>

#include <ctime>
#include <thread>

#include "report/html_style.h"
#include "report/svg_chart.h"
#include "support/system.h"

std::string beginPage(const std::string& title, const std::string& lead) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n"
      "<p class=\"lead\">{}</p>\n</header>\n<main>\n",
      escaped(title), kHtmlStyle, escaped(title), escaped(lead));
}

std::string endPage() { return "</main>\n</body>\n</html>\n"; }

std::string factRow(const std::string& name, const std::string& value) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
}

std::string timeOfPage() {
  char now[40];
  const std::time_t time = std::time(nullptr);
  std::strftime(now, sizeof now, "%Y-%m-%d %H:%M UTC", std::gmtime(&time));
  return now;
}

Facts systemFacts() {
  return {
      {"Processor", fmt::format("{}, {} hardware threads", processorName(),
                                std::thread::hardware_concurrency())},
      {"Memory", fmt::format("{:.0f} GiB", memoryGib())},
      {"System", systemName()},
  };
}
