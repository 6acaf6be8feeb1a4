// SPDX-License-Identifier: Zlib
// Lets this program's operator new fail. failing_new.cpp, which replaces the operator, is one of
// the program's files.
#pragma once

namespace failing_new {

/// Counts down with each allocation of this thread; the one that finds 0, and all after it, fail.
/// Negative: no limit.
extern constinit thread_local long allocationsLeft;
extern constinit thread_local bool hasFailed;

/// Calls f() with a limited number of allocations. Returns whether one failed. Lets exceptions of f
/// through.
template <class F>
bool callWith(long allocations, const F& f) {
  struct Limit {
    explicit Limit(long left) { allocationsLeft = left, hasFailed = false; }
    ~Limit() { allocationsLeft = -1; }
  } const limit(allocations);
  f();
  return hasFailed;
}

}  // namespace failing_new
