// SPDX-License-Identifier: MIT
#include "record/launchers.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "perfmap/jit_format.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kUseSu =
    "record as root, and start the command by su without -l, or by setpriv";

constexpr std::array kLaunchers = {
    Launcher{"sh", Starts::text},
    Launcher{"bash", Starts::text},
    Launcher{"dash", Starts::text},
    Launcher{"ksh", Starts::text},
    Launcher{"zsh", Starts::text},
    Launcher{"fish", Starts::text},
    Launcher{"busybox", Starts::text},
    Launcher{"make", Starts::text},
    Launcher{"ninja", Starts::text},
    Launcher{"xargs", Starts::text},
    Launcher{"parallel", Starts::text},
    Launcher{"find", Starts::text},
    Launcher{"flock", Starts::text},
    Launcher{"script", Starts::text},
    Launcher{"watch", Starts::text},
    Launcher{"hyperfine", Starts::text},
    Launcher{"env", Starts::words, "-i - --ignore-environment", {}, "start it without -i"},
    Launcher{"nice"},
    Launcher{"ionice"},
    Launcher{"chrt"},
    Launcher{"taskset"},
    Launcher{"numactl"},
    Launcher{"prlimit"},
    Launcher{"choom"},
    Launcher{"setarch"},
    Launcher{"timeout"},
    Launcher{"time"},
    Launcher{"stdbuf"},
    Launcher{"setsid"},
    Launcher{"nohup"},
    Launcher{"unshare"},
    Launcher{"nsenter"},
    Launcher{"chroot"},
    Launcher{"bwrap", Starts::words, "--clearenv", {}, "start it without --clearenv"},
    Launcher{"firejail"},
    Launcher{"strace"},
    Launcher{"ltrace"},
    Launcher{"valgrind"},
    Launcher{"xvfb-run"},
    Launcher{"dbus-run-session"},
    Launcher{"faketime"},
    Launcher{"tini"},
    Launcher{"dumb-init"},
    Launcher{"catatonit"},
    Launcher{"su", Starts::user, "-l - --login", {}, "start it without - or -l"},
    Launcher{"runuser", Starts::user, "-l - --login", {}, "start it without - or -l"},
    Launcher{"setpriv", Starts::user, "--reset-env", {}, "start it without --reset-env"},
    Launcher{"gosu", Starts::user},
    Launcher{"su-exec", Starts::user},
    Launcher{"chpst", Starts::user},
    Launcher{"setuidgid", Starts::user},
    Launcher{"s6-setuidgid", Starts::user},
    Launcher{"sudo", Starts::user, "*", "-E --preserve-env", kUseSu},
    Launcher{"doas", Starts::user, "*", {}, kUseSu},
    Launcher{"pkexec", Starts::user, "*", {}, kUseSu},
};

}  // namespace

const Launcher* find_launcher(std::string_view path) noexcept {
  const auto* const found = std::ranges::find(kLaunchers, base_name(path), &Launcher::name);
  return found == kLaunchers.end() ? nullptr : found;
}

bool is_option_of(std::string_view word, std::string_view options) noexcept {
  while (!options.empty()) {
    const std::string_view option = options.substr(0, options.find(' '));
    options.remove_prefix(std::min(options.size(), option.size() + 1));
    if (word == option) return true;
    const bool is_letter = option.size() == 2 && option[1] != '-';
    const bool has_letters = word.size() > 2 && word[0] == '-' && word[1] != '-';
    if (is_letter && has_letters && word.find(option[1]) != std::string_view::npos) return true;
    if (option.starts_with("--") && word.starts_with(std::string(option) + "=")) return true;
  }
  return false;
}

}  // namespace perfmap
