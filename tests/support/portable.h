// SPDX-License-Identifier: Zlib
// Wraps what tests need from the operating system: environment variables, and memory for operator
// new.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

#if defined(_WIN32)
#include <malloc.h>
#endif

namespace lbvh::test {

inline void setVariable(const char* name, const char* value) {
#if defined(_WIN32)
  _putenv_s(name, value);
#else
  setenv(name, value, 1);
#endif
}

inline void unsetVariable(const char* name) {
#if defined(_WIN32)
  _putenv_s(name, "");
#else
  unsetenv(name);
#endif
}

/// Sets an environment variable, and restores its old value when the object is destroyed.
class ScopedVariable {
 public:
  /// @param value null: the variable is removed
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name); before != nullptr) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

  void set(const char* value) const {
    value != nullptr ? setVariable(name_, value) : unsetVariable(name_);
  }

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

/// @return null if there is no memory
inline void* allocateAligned(std::size_t size, std::size_t alignment) {
#if defined(_WIN32)
  return _aligned_malloc(size == 0 ? 1 : size, alignment);
#else
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
#endif
}

inline void freeAligned(void* memory) {
#if defined(_WIN32)
  _aligned_free(memory);
#else
  std::free(memory);
#endif
}

}  // namespace lbvh::test
