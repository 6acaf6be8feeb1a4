// POSIX; see the header.
#include "support/interruption.h"

#include <csignal>

namespace {

volatile std::sig_atomic_t caught = 0;

}  // namespace

void catchInterruptions() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { caught = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int interruption() { return caught; }
