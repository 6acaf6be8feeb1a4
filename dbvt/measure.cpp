// SPDX-License-Identifier: Zlib
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace gpulbvhDbvt {

constinit bool measuring = false;

namespace {

constexpr long long kSecond = 1000000000;
constexpr long long kPeriod = 2 * kSecond;
constexpr unsigned kUpdatesPerSample = 61;  // prime, so that samples follow no pattern of calls

// In ns. A longer update was most likely interrupted by another process. Such an update counts only
// for itself, not as a sample that stands for 61 updates.
constexpr long long kInterrupted = kSecond / 10000;

struct LongStep {
  long long time, step;  // steps are counted from 1; 0: there is no step
};
constexpr int kLongest = 3;

/// Counts and nanoseconds since the last line, or since the start.
struct Sums {
  long long steps, pairs, finding, updates, samples, sampled, interrupted;
  LongStep longest[kLongest];  ///< the steps that took longest to find pairs, in descending order
};

struct Totals {
  pid_t process;
  int oursMade, bulletsMade, objects;
  long long started, lastLine;
  Sums sums, sinceLine;
};

Totals totals;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
long long clockCost = 0;
// The number of updates, counted without a lock. A few may be lost if several threads move objects
// at the same time.
unsigned updates = 0;

long long now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

/// Nanoseconds to read the clock. The minimum of many readings excludes interrupted readings.
long long costOfClock() {
  long long least = kSecond;
  for (int i = 0; i < 100; ++i) {
    const long long begun = now();
    const long long cost = now() - begun;
    if (cost < least) least = cost;
  }
  return least;
}

void addLongest(Sums& to, LongStep step) {
  for (LongStep& place : to.longest) {
    if (step.time <= place.time) continue;
    const LongStep shorter = place;
    place = step;
    step = shorter;
  }
}

void add(Sums& to, const Sums& from) {
  to.steps += from.steps;
  to.pairs += from.pairs;
  to.finding += from.finding;
  for (const LongStep& step : from.longest) addLongest(to, step);
  to.updates += from.updates;
  to.samples += from.samples;
  to.sampled += from.sampled;
  to.interrupted += from.interrupted;
}

double perStep(const Sums& sums, double value) {
  return sums.steps == 0 ? 0 : value / static_cast<double>(sums.steps);
}

/// Milliseconds per step for all updates, estimated from the sampled updates.
double updateMs(const Sums& sums) {
  const auto samples = static_cast<double>(sums.samples > 0 ? sums.samples : 1);
  const double all =
      static_cast<double>(sums.sampled) / samples * static_cast<double>(sums.updates);
  return perStep(sums, (all + static_cast<double>(sums.interrupted)) / 1e6);
}

double ms(const LongStep& step) { return static_cast<double>(step.time) / 1e6; }

double findMs(const Sums& sums) { return perStep(sums, static_cast<double>(sums.finding) / 1e6); }

/// Milliseconds per step for reading the clock.
double overheadMs(const Sums& sums) {
  const auto readings = static_cast<double>(2 * (sums.steps + sums.samples));
  return perStep(sums, readings * static_cast<double>(clockCost) / 1e6);
}

/// Adds the updates that were counted without the lock.
void takeUpdates() {
  static unsigned taken = 0;
  const unsigned counted = __atomic_load_n(&updates, __ATOMIC_RELAXED);
  totals.sinceLine.updates += counted - taken;
  taken = counted;
}

void writeLine(long long time) {
  const Sums& s = totals.sinceLine;
  const LongStep* const l = s.longest;
  char text[512];
  const int length = snprintf(
      text, sizeof text,
      "%d,%.3f,%s,%d,%d,%lld,%.0f,%.6f,%.6f,%.6f,%lld,%.6f,%lld,%.6f,%lld,%.6f\n", getpid(),
      static_cast<double>(time - totals.started) / kSecond,
      totals.oursMade > 0 ? "gpulbvh" : "bullet", totals.oursMade + totals.bulletsMade,
      totals.objects, s.steps, perStep(s, static_cast<double>(s.pairs)), updateMs(s), findMs(s),
      ms(l[0]), l[0].step, ms(l[1]), l[1].step, ms(l[2]), l[2].step, overheadMs(s));
  const int file = open(getenv("GPULBVH_MEASURE"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || write(file, text, static_cast<size_t>(length)) != length) {
    fprintf(stderr, "gpulbvh: GPULBVH_MEASURE: %s\n", strerror(errno));
    measuring = false;
  }
  if (file >= 0) close(file);
  add(totals.sums, s);
  totals.sinceLine = Sums{};
  totals.lastLine = time;
}

void writeEnd() {
  if (!measuring || totals.oursMade + totals.bulletsMade == 0) return;
  if (getpid() != totals.process) return;  // a child of vfork shares its parent's memory
  pthread_mutex_lock(&mutex);
  takeUpdates();
  writeLine(now());
  measuring = false;
  const Sums& s = totals.sums;
  fprintf(
      stderr,
      "gpulbvh: %d broad phases ours, %d Bullet's; %lld steps with %.0f pairs. Per step: %.4f "
      "ms to update, %.4f ms to find, at most %.4f ms; reading the clock took %.4f ms of this\n",
      totals.oursMade, totals.bulletsMade, s.steps, perStep(s, static_cast<double>(s.pairs)),
      updateMs(s), findMs(s), ms(s.longest[0]), overheadMs(s));
  pthread_mutex_unlock(&mutex);
}

void start() {
  totals.process = getpid();
  totals.started = totals.lastLine = now();
}

/// Resets the totals in a child process, which has made no step yet but has the parent's objects.
void forgetParent() {
  mutex = PTHREAD_MUTEX_INITIALIZER;
  const int objects = totals.objects;
  totals = Totals{};
  totals.objects = objects;
  start();
}

__attribute__((constructor)) void startMeasuring() {
  const char* const file = getenv("GPULBVH_MEASURE");
  measuring = file != nullptr && *file != '\0';
  if (!measuring) return;
  clockCost = costOfClock();
  start();
  pthread_atfork(nullptr, nullptr, forgetParent);
}

__attribute__((destructor)) void endMeasuring() { writeEnd(); }

}  // namespace

void countBroadphase(bool ours) {
  if (measuring)
    __atomic_fetch_add(ours ? &totals.oursMade : &totals.bulletsMade, 1, __ATOMIC_RELAXED);
}

void countObject(int change) {
  if (measuring) __atomic_fetch_add(&totals.objects, change, __ATOMIC_RELAXED);
}

long long UpdateTimer::begin() {
  const unsigned count = __atomic_load_n(&updates, __ATOMIC_RELAXED) + 1;
  __atomic_store_n(&updates, count, __ATOMIC_RELAXED);
  return count % kUpdatesPerSample == 0 ? now() : 0;
}

void UpdateTimer::end(long long begun) {
  const long long taken = now() - begun - clockCost;
  pthread_mutex_lock(&mutex);
  Sums& sums = totals.sinceLine;
  if (taken >= kInterrupted) {
    sums.interrupted += taken;
  } else {
    sums.sampled += taken > 0 ? taken : 0;
    ++sums.samples;
  }
  pthread_mutex_unlock(&mutex);
}

long long StepTimer::begin() { return now(); }

void StepTimer::end(long long begun, const btOverlappingPairCache* cache) {
  const long long time = now(), taken = time - begun;
  const int pairs = reinterpret_cast<const PairCache*>(cache)->getNumOverlappingPairs();
  pthread_mutex_lock(&mutex);
  takeUpdates();
  Sums& sums = totals.sinceLine;
  ++sums.steps;
  sums.pairs += pairs;
  sums.finding += taken;
  addLongest(sums, {taken, totals.sums.steps + sums.steps});
  if (time - totals.lastLine >= kPeriod) writeLine(time);
  pthread_mutex_unlock(&mutex);
}

}  // namespace gpulbvhDbvt

// These functions end a process without running destructors, so they write the last line
// themselves.
extern "C" {
__attribute__((visibility("default"), noreturn)) void _exit(int status) {
  gpulbvhDbvt::writeEnd();
  for (;;) syscall(SYS_exit_group, status);
}
__attribute__((visibility("default"), noreturn)) void _Exit(int status) { _exit(status); }
}
