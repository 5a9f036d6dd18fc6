// SPDX-License-Identifier: MIT
#include "support/synthetic_log.hpp"

#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <random>

namespace perfmap::test {
namespace {

class Writer {
 public:
  explicit Writer(const SyntheticLog& wishes) : wishes_(wishes), random_(wishes.seed) {}

  std::string take_block(unsigned number) {
    text_.clear();
    if (wishes_.compiled) trace(number % wishes_.loops);
    if (wishes_.compiled && number < wishes_.loops) compile(number);
    for (unsigned i = 0; i < 150; ++i) run();
    return std::move(text_);
  }

 private:
  __attribute__((format(printf, 2, 3))) void line(const char* format, ...) {
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    const int size = std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    text_.append(buffer, static_cast<std::size_t>(size)) += '\n';
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  void open(const char* category) {
    line("[%llx] {%s", static_cast<unsigned long long>(time_ += 50 + below(3000)), category);
  }
  void close(const char* category) {
    line("[%llx] %s}", static_cast<unsigned long long>(time_ += 20 + below(900)), category);
  }

  std::string name(unsigned loop) const {
    char text[128];
    if (loop % 3 != 0) {
      std::snprintf(text, sizeof text, "bridge out of Guard 0x7f2ba33%05x", loop * 72);
    } else {
      std::snprintf(text, sizeof text,
                    "Loop %u (handle_%u;/srv/app/views/module_%u.py:%u-%u~#%u FOR_ITER)", loop,
                    loop, loop % 23, loop * 7, loop * 7 + 3, loop % 90 * 2);
    }
    return text;
  }

  void operations(unsigned loop, bool placed) {
    for (unsigned i = 0; i < 40; ++i) {
      const std::string at = placed ? "+" + std::to_string(280 + 9 * i) + ": " : "";
      line("debug_merge_point(0, 0, 'handle_%u;/srv/app/views/module_%u.py:%u-%u~#%u LOAD_FAST')",
           loop, loop % 23, loop * 7, loop * 7 + i / 4, 2 * i);
      line(
          "%sp%u = getfield_gc_r(p%u, descr=<FieldP pypy.interpreter.pyframe.PyFrame.inst_pycode "
          "%u>)",
          at.c_str(), i + 9, i, 8 * i);
      line("%sguard_value(p%u, ConstPtr(ptr%u), descr=<Guard0x7f2ba33%05x>) [p0, p2, p%u, p9, p11]",
           at.c_str(), i + 9, i, (loop * 40 + i) * 72, i);
    }
  }

  void trace(unsigned loop) {
    open("jit-tracing");
    open("jit-log-noopt");
    line("# Traced loop or bridge with 120 ops");
    operations(loop, false);
    close("jit-log-noopt");
    open("jit-optimize");
    close("jit-optimize");
    close("jit-tracing");
  }

  void compile(unsigned loop) {
    open("jit-backend");
    open("jit-backend-dump");
    line("BACKEND x86_64");
    std::string hex(2400, '0');
    for (char& digit : hex) digit = "0123456789ABCDEF"[below(16)];
    const unsigned address = 0x100000 + loop * 0x1000;
    text_ += "CODE_DUMP @7f2b00" + std::to_string(address) + " +0  " + hex + "\n";
    close("jit-backend-dump");
    open("jit-backend-addr");
    const std::string called = name(loop);
    line("%s has address 0x7f2b%08x to 0x7f2b%08x", called.c_str(), address + 0x80,
         address + 0x400);
    line("       function: 0x7f2b%08x", address);
    line("            end: 0x7f2b%08x", address + 0x4b0);
    close("jit-backend-addr");
    const char* const category = loop % 3 == 0 ? "jit-log-opt-loop" : "jit-log-opt-bridge";
    open(category);
    line("# %s%s with 120 ops", called.c_str(), loop % 3 == 0 ? " : loop" : "");
    operations(loop, true);
    close(category);
    close("jit-backend");
  }

  void run() {
    const bool leaves = entered_ < wishes_.loops && below(5) == 0;
    if (!leaves) entered_ = below(wishes_.loops);
    const char* const category = leaves ? "jit-profile-exit" : "jit-profile-enter";
    open(category);
    text_ += name(entered_) + "\n";
    close(category);
    if (leaves) entered_ = wishes_.loops;
    if (below(40) != 0) return;
    open("gc-minor");
    open("gc-minor-walkroots");
    close("gc-minor-walkroots");
    close("gc-minor");
  }

  SyntheticLog wishes_;
  std::mt19937 random_;
  std::string text_;
  std::uint64_t time_ = 0xacc0ab13b41;
  unsigned entered_ = UINT32_MAX;
};

}  // namespace

void write_synthetic_log(const std::string& path, const SyntheticLog& wishes) {
  std::ofstream file(path, std::ios::binary);
  Writer writer(wishes);
  std::uint64_t written = 0;
  for (unsigned number = 0; written < wishes.bytes; ++number) {
    const std::string block = writer.take_block(number);
    file << block;
    written += block.size();
  }
}

}  // namespace perfmap::test
