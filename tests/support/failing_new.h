// SPDX-License-Identifier: Zlib
// Makes operator new fail on request. The program must contain failing_new.cpp, which replaces the
// operator.
#pragma once

namespace failing_new {

/// Number of further allocations of this thread that succeed. All later allocations fail. If
/// negative, there is no limit.
extern constinit thread_local long allocationsLeft;
extern constinit thread_local bool hasFailed;

/// Calls f() with a limited number of allocations. Returns whether one failed. Does not catch
/// exceptions of f.
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
