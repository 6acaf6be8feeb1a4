// SPDX-License-Identifier: Zlib
// How far a long run is.
#pragma once

/// On stderr, and only if that is a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(int steps);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(int done);

 private:
  int steps_;
  int shown_ = -1;
  bool terminal_;
};
