// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace perfmap::bench {

/// The program, and the inputs of all rows.
struct Files {
  std::string program;
  std::string plain;   ///< a million entries, no overlaps
  std::string reused;  ///< a million entries, a fifth of them over earlier ones
  std::string large;   ///< ten million entries
  std::string out;
};

void bench_index(const Files& files);
void bench_jitdump(const Files& files);
void bench_jitlog(const Files& files);
void bench_lines(const Files& files);
void bench_lines_threads(const Files& files);
void bench_commands(const Files& files);
void bench_modules(const Files& files);
void bench_processes(const Files& files);
void bench_pypylog(const Files& files);
void bench_stacks(const Files& files);
void bench_stacks_threads(const Files& files);
void bench_trampoline(const Files& files);
void bench_writer(const Files& files);
void bench_writer_threads(const Files& files);
void bench_own_map(const Files& files);
void bench_own_map_threads(const Files& files);
void bench_mapped_writer(const Files& files);
void bench_mapped_writer_threads(const Files& files);

}  // namespace perfmap::bench
