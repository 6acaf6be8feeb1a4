// SPDX-License-Identifier: Zlib
// The progress bar of a long run.
#pragma once

/// Draws to stderr, but only if that is a terminal.
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
