/* SPDX-License-Identifier: MIT */
/* Reads events as lines, gives them to a tracker, and asks for the address space of each sample:
 *   c PID NAME, e PID NAME (exec), f PID PARENT, m PID BEGIN SIZE PROTECTION NAME, s PID ADDRESS */
#include <inttypes.h>
#include <perfmap_profile.h>
#include <stdio.h>
#include <string.h>

static perfmap_status take_sample(perfmap_tracker* tracker, int32_t pid, uint64_t address) {
  perfmap_space* space = NULL;
  const perfmap_status made =
      perfmap_space_begin_with_tracker(tracker, pid, PERFMAP_NOW, &space, NULL);
  if (made != PERFMAP_OK) return made;
  perfmap_region region = {.struct_size = sizeof region};
  const perfmap_status found = perfmap_space_find(space, address, &region);
  perfmap_space_end(space);
  return found;
}

static perfmap_status take(perfmap_tracker* tracker, const char* line, uint64_t time) {
  int32_t pid = 0, parent = 0;
  uint64_t begin = 0, size = 0;
  unsigned protection = 0;
  char name[256] = "";
  if (sscanf(line, "c %" SCNd32 " %255s", &pid, name) == 2) {
    return perfmap_tracker_on_comm(tracker, pid, pid, time, name, strlen(name), 0, NULL);
  }
  if (sscanf(line, "e %" SCNd32 " %255s", &pid, name) == 2) {
    return perfmap_tracker_on_comm(tracker, pid, pid, time, name, strlen(name), 1, NULL);
  }
  if (sscanf(line, "f %" SCNd32 " %" SCNd32, &pid, &parent) == 2) {
    return perfmap_tracker_on_fork(tracker, pid, pid, parent, time, NULL);
  }
  if (sscanf(line, "m %" SCNd32 " %" SCNu64 " %" SCNu64 " %u %255s", &pid, &begin, &size,
             &protection, name) == 5) {
    perfmap_mmap_event event = {.struct_size = sizeof event,
                                .pid = pid,
                                .time = time,
                                .begin = begin,
                                .size = size,
                                .access = protection,
                                .name = name,
                                .name_size = strlen(name)};
    return perfmap_tracker_on_mmap(tracker, &event, NULL);
  }
  if (sscanf(line, "s %" SCNd32 " %" SCNu64, &pid, &begin) == 2) {
    return take_sample(tracker, pid, begin);
  }
  return PERFMAP_E_INVALID_ARGUMENT;
}

int main(int argc, char** argv) {
  FILE* const file = argc == 2 ? fopen(argv[1], "r") : NULL;
  perfmap_tracker_options options = {.struct_size = sizeof options};
  perfmap_tracker* tracker = NULL;
  if (file == NULL || perfmap_tracker_begin(&options, &tracker, NULL) != PERFMAP_OK) return 2;
  char line[512];
  perfmap_status status = PERFMAP_OK;
  for (uint64_t time = 1; status == PERFMAP_OK && fgets(line, sizeof line, file) != NULL; ++time) {
    if (line[0] != '\n') status = take(tracker, line, time);
  }
  perfmap_tracker_end(tracker);
  fclose(file);
  return status == PERFMAP_OK ? 0 : 2;
}
