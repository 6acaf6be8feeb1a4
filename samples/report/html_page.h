// SPDX-License-Identifier: Zlib
// Writes the common parts of HTML pages with figures: head, end, and facts about the machine. A
// page needs no network and no script.
#pragma once

#include <string>
#include <utility>
#include <vector>

/// Returns the start of the page, up to <main>. `title` and `lead` are plain text.
std::string beginPage(const std::string& title, const std::string& lead);
std::string endPage();

/// A row of a <dl>. Both arguments are plain text.
std::string factRow(const std::string& name, const std::string& value);

/// The current time, in UTC.
std::string timeOfPage();

using Facts = std::vector<std::pair<std::string, std::string>>;

/// Processor, memory and system of this machine.
Facts systemFacts();
