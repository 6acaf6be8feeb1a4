// SPDX-License-Identifier: Zlib
#include "support/progress_bar.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>

#include "support/system.h"

ProgressBar::ProgressBar(int steps) : steps_(steps), terminal_(hasTerminal()) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && shown_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(int done) {
  constexpr int kWidth = 40;
  const int filled = steps_ > 0 ? static_cast<int>(std::int64_t{kWidth} * done / steps_) : kWidth;
  if (!terminal_) return;
  shown_ = done;
  fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {}/{}", "", filled, "", kWidth - filled, done, steps_);
  std::fflush(stderr);
}
