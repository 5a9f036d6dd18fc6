// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/json.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/process_rights.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/source.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/types.hpp"

/// Recording a program with perf record, so that the code of its runtimes has names. The command
/// `perfmap record` consists of these steps; see perfmap-record(1).

namespace perfmap {

// The environment of the program.

/// A variable that makes a runtime name its code.
struct NamingVariable {
  Runtime runtime = Runtime::unknown;
  std::string name;
  std::string value;  ///< with what the user has set
};

/// How to start a program so that its code has names.
struct NamingPlan {
  std::vector<NamingVariable> variables;
  /// Text of DIR/ini/perfmap.ini, a file that a variable refers to; empty: there is none.
  std::string ini;
  /// Whether a variable refers to DIR/written, a directory that the program writes to.
  bool writes_to_directory = false;
  /// To be appended to the command.
  std::vector<std::string> arguments;
  /// Sentences for the user: what was not set, and why; what the program prints because of it.
  std::vector<std::string> notes;
  /// What code of a runtime has no names, and what to do. Only of use if there is such code.
  std::vector<std::pair<Runtime, std::string>> left_out;
  /// The runtime of the program; unknown for a program that may start others.
  Runtime runtime = Runtime::unknown;
  /// "fp", if that runtime requires it; empty: copies of the stack.
  std::string_view call_graph = {};
};

struct NamingRequest {
  std::vector<std::string> command;      ///< the program and its arguments
  std::vector<std::string> environment;  ///< NAME=VALUE, as the program would get it
  /// Only these. Nothing: those that the command may start. If the program is one of a runtime, or
  /// a script of one, also behind programs such as nice(1), that is this runtime; if it is another
  /// script or a shell, all that are in PATH.
  std::optional<std::vector<Runtime>> runtimes = {};
  std::string directory;      ///< absolute: see RuntimeDirectory
  bool can_write = true;      ///< whether the program can create files in its working directory
  bool can_map_tmp = true;    ///< whether files in /tmp can be mapped as code
  bool can_write_tmp = true;  ///< whether files can be created there
  /// Runs a program with these arguments, without the variables of its runtime, and returns what it
  /// prints.
  std::function<std::string(const std::string& path, std::span<const std::string_view> arguments)>
      run = {};
};

/// Sets nothing that the program's release would refuse, because a wrong option ends Node.js, Java,
/// Ruby and Erlang. Reads the first line of scripts, and runs programs to learn their version.
/// Node.js with all names prints a log on standard output if it cannot create a file in its working
/// directory, which is known only if it is the command itself. Else it gets an option without the
/// log, or, as of a release that has none, a note.
PERFMAP_API NamingPlan plan_naming(const NamingRequest& request);

/// `environment` with the plan's variables, each replacing the variable of that name.
PERFMAP_API std::vector<std::string> environment_with(std::vector<std::string> environment,
                                                      const NamingPlan& plan);

/// Runs a program for at most half a minute, and returns the beginning of its output and errors;
/// empty if it cannot be run. For NamingRequest::run.
PERFMAP_API std::string output_of(const std::string& path,
                                  std::span<const std::string_view> arguments);

/// The file that a shell with this environment would run for the name or path of a program; empty
/// if there is none.
PERFMAP_API std::string program_path(const std::string& program,
                                     const std::vector<std::string>& environment);

// perf record.

/// The options of perf record.
struct PerfRecordOptions {
  std::string perf = "perf";  ///< its path, or a name in PATH
  std::string output;         ///< path of the recording
  std::uint64_t frequency = 499;
  std::string call_graph = "dwarf,32768";
  std::string event = {};  ///< empty: perf's choice
  bool off_cpu = false;
  /// perf waits up to a second at its end for its list of BPF programs, whose names the kernel's
  /// symbols have as well. See perf_record_has().
  bool omits_bpf_events = false;
  /// Size of perf's buffers, for -m: large copies of stacks fill a small one before perf reads it.
  /// Empty: perf's own. Memory is limited for users other than root; see kPerfBuffers.
  std::string buffer = "16M";
  std::vector<pid_t> pids = {};  ///< to be recorded; until the command ends, if there is one
  std::vector<std::string> command = {};      ///< to be started, and recorded if there are no pids
  std::vector<std::string> environment = {};  ///< NAME=VALUE of the command, and of perf
};
/// Whether this perf has an option of perf record, such as "no-bpf-event" (perf 5.1). Runs it.
PERFMAP_API bool perf_record_has(const std::string& perf, std::string_view option);
PERFMAP_API std::vector<std::string> perf_record_arguments(const PerfRecordOptions& options);

/// Sizes to try: perf ends with kPerfFailed, before it starts the command, if it may not lock so
/// much memory (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK). Root of a user namespace is limited,
/// too.
inline constexpr std::array<std::string_view, 4> kPerfBuffers = {"16M", "4M", "1M", ""};
inline constexpr int kPerfFailed = 255;

/// The line in which perf says why it cannot record, which it does not say with -q; empty if
/// there is none. Runs it with another command and output.
PERFMAP_API std::string why_perf_failed(PerfRecordOptions options);

/// Whether that line says that perf may not lock the memory for its buffers.
PERFMAP_API bool is_about_buffers(std::string_view why) noexcept;

/// Why perf could not record at all, and what to do; nothing if this process may record. Tries the
/// system call that perf uses. `pid` is that of a process to be recorded, or 0.
PERFMAP_API std::optional<Error> why_not_recorded(pid_t pid);

class RecordedUsers;

/// How a process ended.
struct ProcessEnd {
  int status = 0;  ///< its exit status; 128 + N after signal N
  int signal = 0;  ///< that ended it; 0 if it exited
};
/// From a status of wait(2).
PERFMAP_API ProcessEnd process_end(int wait_status) noexcept;

/// A running perf record. Its command is in the process group of the caller, so that it can read
/// from the terminal, and therefore perf is, too. perf that gets SIGINT terminates the command. So
/// it is traced (ptrace(2)) from when it records, and what the terminal sends to the whole group,
/// at Ctrl-C or when it is closed, reaches only the others. Only for the thread that started it.
class PERFMAP_API PerfRun {
 public:
  /// Fails with not_found if perf cannot be run.
  static Result<PerfRun> start(const PerfRecordOptions& options);
  PerfRun(PerfRun&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        output_(std::move(other.output_)),
        is_tried_(other.is_tried_),
        is_shielded_(other.is_shielded_) {}
  PerfRun& operator=(PerfRun&&) = delete;
  /// Stops perf, which finishes the recording, and waits for its end.
  ~PerfRun();

  pid_t pid() const noexcept { return pid_; }
  /// Whether perf has begun to write the recording, after which it starts the command.
  bool has_begun() const noexcept;
  /// Whether signals of the terminal do not reach perf. False where it may not be traced, as with
  /// the capabilities of its file.
  bool is_shielded() const noexcept { return is_shielded_; }
  /// Asks perf to finish the recording. A command is terminated.
  void stop();
  /// Continues perf if somebody has stopped it (SIGSTOP).
  void resume();
  /// When it ends, perf reads the perf maps of processes, and hangs in one that is a FIFO. If it
  /// does, those of these processes end for it. Returns their paths.
  std::vector<std::string> pass_fifos(const RecordedUsers& processes, const Roots& roots = {});
  /// Waits so long for the end, or until a signal was handled. Nothing if perf still runs. perf
  /// ends as the command does, or by a signal that it got itself.
  std::optional<ProcessEnd> wait(int milliseconds) noexcept;

 private:
  PerfRun(pid_t pid, std::string output) noexcept : pid_(pid), output_(std::move(output)) {}
  void shield() noexcept;
  std::optional<ProcessEnd> collect(int flags) noexcept;

  pid_t pid_ = 0;  // 0: it has ended
  std::string output_;
  bool is_tried_ = false;
  bool is_shielded_ = false;
};

// Living processes.

/// Asks a JVM (17 or later) to write a perf map of all its code to its /tmp, by its attach
/// protocol: like `jcmd PID Compiler.perfmap`, but without a JDK. The process must be a JVM of this
/// user, or the caller root. If the JVM has no socket yet, it gets SIGQUIT, but only if it handles
/// that signal and does not forbid attaching; otherwise the signal would end it, or print its
/// stacks. Waits at most `max_wait` for each step. Fails with refused, not_found or io.
PERFMAP_API Result<void> ask_jvm_for_map(
    pid_t pid, const Roots& roots = {},
    std::chrono::milliseconds max_wait = std::chrono::seconds(10));

/// Makes a .NET process (8 or later) write a perf map and a jitdump from now on, which also name
/// the methods that it has compiled before, or makes it stop that, by its diagnostic socket. The
/// process must be of this user, or the caller root. Follows no link, and accepts no socket of
/// another user or process. Waits at most `max_wait`. Fails with refused, not_found or io.
PERFMAP_API Result<void> switch_dotnet_names(
    pid_t pid, bool on, const Roots& roots = {},
    std::chrono::milliseconds max_wait = std::chrono::seconds(10));

/// The children of these processes, their children, and so on: at most 4096, without the processes
/// themselves.
PERFMAP_API std::vector<pid_t> descendants_of(std::vector<pid_t> pids, const Roots& roots = {});

/// While it lives, a descendant of this process whose parent ends becomes a child of this process
/// (PR_SET_CHILD_SUBREAPER), so that descendants_of() still finds it. One thread at a time.
class PERFMAP_API OrphanAdopter {
 public:
  OrphanAdopter();
  /// Adopts no further ones. Those that live remain children of this process.
  ~OrphanAdopter();
  OrphanAdopter(const OrphanAdopter&) = delete;
  OrphanAdopter& operator=(const OrphanAdopter&) = delete;

  /// Collects the ended ones among these processes, which were zombies until then. Others that
  /// are no children of this process do not matter.
  void reap(std::span<const pid_t> pids) noexcept;

 private:
  int before_ = 0;
};

/// Holds a process that need not be a child of this one, by a descriptor (pidfd_open).
class PERFMAP_API HeldProcess {
 public:
  explicit HeldProcess(pid_t pid) noexcept;
  HeldProcess(HeldProcess&& other) noexcept
      : pid_(other.pid_), descriptor_(std::exchange(other.descriptor_, -1)) {}
  HeldProcess& operator=(HeldProcess&&) = delete;
  ~HeldProcess();

  pid_t pid() const noexcept { return pid_; }
  /// A zombie does not live. False if the process could not be held.
  bool lives() const noexcept;
  /// How it ended, after its parent has waited for it. Nothing before that, and before Linux 6.15.
  std::optional<ProcessEnd> end() const noexcept;

 private:
  pid_t pid_;
  int descriptor_;
};

/// Sends a signal to the descendants of this process that are in its process group, as a terminal
/// would, except for `spared`. A process that begins later does not get it. Processes are held by
/// descriptors (pidfd_open), so that no other process with such a pid gets the signal. Returns
/// those that got it.
PERFMAP_API std::vector<pid_t> signal_descendants(int signal, pid_t spared);

// The recording directory.

/// A directory with a recording and the files that name its code; see docs/format-recording.md:
///
///   perf.data        the recording
///   perf-PID.map     the perf map of a recorded process, by the pid in the recording
///   jit-*.dump       a jitdump, with its file name
///   elf-*            a copy of an ELF file, by its build ID
///   recording.json   docs/schema/perfmap.recording-1.json
///
/// recording_in() finds the recording of one. The directory above may be another user's, who can
/// rename this one, and put another or a link in its place. So it stays open, and all is done
/// there. Copies are the same directory.
class PERFMAP_API RecordingDirectory {
 public:
  /// Creates a directory, mode 0700, or accepts an empty one. Fails with refused if it exists and
  /// is not empty, and if it may have been planted; else with io.
  static Result<RecordingDirectory> create(const std::string& path);

  const std::string& path() const noexcept { return path_; }  ///< absolute; for messages
  int descriptor() const noexcept;                            ///< borrowed
  /// Leads to the directory that was made, wherever it is; in other processes, too, while this one
  /// lives. The same as path() without /proc.
  const std::string& held_path() const noexcept;
  std::string recording() const { return held_path() + "/" + std::string(kRecordingName); }
  /// Fails with refused if the path does not lead to the directory that was made.
  Result<void> check() const;
  /// Writes a new file of the directory, mode 0600; none if that fails. Fails with refused if it
  /// exists.
  Result<void> write(const std::string& name, std::string_view bytes) const;
  Result<void> write(const std::string& name,
                     const std::function<void(OutputFile& out)>& fill) const;
  void remove_file(const std::string& name) const noexcept;
  /// Removes the directory, if create() made it, with the files that a failed recording leaves.
  void discard() const;
  /// Removes these files of the directory, such as those that are in an archive now, and then the
  /// directory, if create() made it. Fails if it remains, because it has other files or was moved.
  Result<void> remove(std::span<const std::string> files) const;

 private:
  struct Held;
  RecordingDirectory(std::string path, std::shared_ptr<const Held> held) noexcept
      : path_(std::move(path)), held_(std::move(held)) {}
  std::string path_;
  std::shared_ptr<const Held> held_;
};

/// A directory that exists during a recording, for what the recorded program reads and writes
/// because of it: DIR/ini has settings, and in DIR/written it creates files. The program may run as
/// another user, by su(1), who cannot enter the directory of the recording. So the directory of
/// root is /tmp/perfmap-RANDOM/RANDOM, of which others cannot list the first part: only programs
/// that got the path in a variable find the second. Other users cannot record such a program, and
/// files in a /tmp without execution could not be mapped as code: then it is below the recording.
class PERFMAP_API RuntimeDirectory {
 public:
  /// Chooses the path, and creates nothing.
  RuntimeDirectory(const RecordingDirectory& recording, const std::string& tmp);
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;
  ~RuntimeDirectory() { remove(); }

  const std::string& path() const noexcept { return path_; }  ///< absolute
  std::string written() const { return path_ + "/written"; }
  /// Creates what the variables of the plan refer to. Fails with io.
  Result<void> create(const NamingPlan& plan);
  /// Removes all of it, if create() was called.
  void remove() noexcept;

 private:
  RecordingDirectory recording_;
  bool is_in_tmp_;
  std::string top_;   // with what is in it, it is removed
  std::string path_;  // below it
  bool was_made_ = false;
};

/// Whether files in this directory can be mapped as code: its file system is not mounted noexec.
PERFMAP_API bool can_map_code_in(const std::string& directory) noexcept;

/// How many bytes users other than root can still write to the file system of a directory; nothing
/// if that is unknown.
PERFMAP_API std::optional<std::uint64_t> free_bytes_in(const std::string& directory) noexcept;

/// Whether this process can create files in a directory. Tries it, because permission bits do not
/// say: root can create none below /sys and /proc. Leaves no file.
PERFMAP_API bool can_create_files_in(const std::string& directory);

/// A file that was copied into the directory.
struct KeptFile {
  std::string name;    ///< in the directory
  std::string source;  ///< where it was
  pid_t pid = 0;
  bool is_dump = false;
  std::uint64_t size = 0;
  std::uint64_t device = 0;  ///< of the source
  std::uint64_t inode = 0;
};

/// The processes of a recording, by pid, also those without samples.
PERFMAP_API std::vector<ProcessInfo> processes_of(const Recording& recording);

/// The users that recorded processes ran as while they lived: a recording does not say. One thread
/// at a time.
class PERFMAP_API RecordedUsers {
 public:
  explicit RecordedUsers(Roots roots = {}) : roots_(std::move(roots)) {}

  /// To be called again while the processes live, because they may change their user.
  void look(std::span<const pid_t> pids);
  /// Whether a process was seen as this user.
  bool ran_as(pid_t pid, uid_t user) const;
  /// Whether any process was.
  bool ran_as(uid_t user) const;
  /// Whether a file of this owner may be removed for a process: it was seen as that user, or it was
  /// not seen and the file is ours.
  bool may_remove(pid_t pid, uid_t owner) const;
  /// The last that were seen; the caller's own for a process that was not.
  const ProcessRights& rights(pid_t pid) const;
  std::vector<pid_t> pids() const;  ///< those that were seen

 private:
  Roots roots_;
  std::set<std::pair<pid_t, uid_t>> seen_;
  std::map<pid_t, ProcessRights> rights_;
};

/// The working directories of recorded processes, and their pids inside of pid namespaces: V8
/// leaves logs in the one, named by the other. One thread at a time.
class PERFMAP_API RecordedPlaces {
 public:
  struct Place {
    std::string path;  ///< for messages: in another mount namespace, it may be another directory
    int directory = -1;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
  };

  explicit RecordedPlaces(Roots roots = {}) : roots_(std::move(roots)) {}
  RecordedPlaces(RecordedPlaces&& other) noexcept;
  RecordedPlaces& operator=(RecordedPlaces&&) = delete;
  ~RecordedPlaces();

  /// Holds the directories, at most 64. To be called again while the processes live, because they
  /// may change to others, and open files.
  void look(std::span<const pid_t> pids);
  const std::vector<Place>& places() const noexcept { return places_; }
  /// The pid of a process in its innermost namespace; its own if that is not known.
  pid_t inner_pid(pid_t pid) const;
  using FileKey = std::pair<std::uint64_t, std::uint64_t>;  ///< device and inode
  /// Whether a process in another pid namespace was seen to have the file open for writing, and the
  /// process that has its inner pid here has not.
  bool wrote(pid_t pid, const FileKey& file) const;
  /// Whether a file that is named by a pid is of that process. A process can choose its pid in a
  /// namespace of its own, so that proves nothing: it must have written the file.
  bool is_file_of(pid_t named, pid_t pid, const FileKey& file) const;
  /// Whether a file in the caller's /tmp is named by the inner pid of the process.
  bool is_shared(pid_t pid, const Input& file) const;

 private:
  Roots roots_;
  std::vector<Place> places_;
  std::map<pid_t, pid_t> inner_;
  std::set<std::pair<pid_t, FileKey>> written_;
};

/// Copies the files that name the code of recorded processes into the directory. One thread at a
/// time.
class PERFMAP_API NameKeeper {
 public:
  /// `places` is borrowed; null: nothing is known of pid namespaces.
  explicit NameKeeper(RecordingDirectory directory, const RecordedPlaces* places = nullptr) noexcept
      : directory_(std::move(directory)), places_(places) {}

  /// For RecordedJitOptions::on_found. Copies a file once. A file in the caller's /tmp that is
  /// named by the pid in a namespace is lost, unless the process wrote it.
  void add(pid_t pid, const Input& input, bool is_dump);
  /// Converts the logs in this directory in which runtimes list their code (see MapSupport::log) to
  /// perf maps of those processes. A log must belong to this user, or to one that the process ran
  /// as. Returns their number.
  std::size_t add_logs(const std::string& written, std::span<const ProcessInfo> processes,
                       const RecordedUsers& users);

  /// What to do where processes of several pid namespaces write to one /tmp; ends a reason.
  static constexpr std::string_view kOwnTmp =
      " (give each a /tmp of its own: unshare --mount, then mount -t tmpfs none /tmp)";
  /// A file that is not copied, although it names code of these processes.
  void refuse(std::span<const pid_t> writers, const Input& file, const std::string& why);
  /// The same of a file that exists no longer.
  void lose(std::span<const pid_t> writers, const std::string& file, const std::string& why);

  const std::vector<KeptFile>& files() const noexcept { return files_; }
  /// Refused files, once for each process.
  const std::vector<KeptFile>& refused() const noexcept { return refused_; }
  /// What was not copied, for RecordingManifest.
  const std::vector<MissingFile>& missing() const noexcept { return missing_; }
  /// Copies that could not be written, and refused files.
  const std::vector<Error>& failures() const noexcept { return failures_; }

 private:
  RecordingDirectory directory_;
  const RecordedPlaces* places_;
  std::vector<KeptFile> files_;
  std::vector<KeptFile> refused_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> failed_;  ///< device and inode
  std::vector<MissingFile> missing_;
  std::vector<Error> failures_;
};

/// Copies the ELF files of recorded processes into the directory, because a file is replaced when
/// the program is built again, and the recording has names only with the file that was recorded.
class PERFMAP_API ModuleKeeper {
 public:
  /// What is copied at most.
  struct Limits {
    std::uint64_t max_bytes = std::uint64_t{256} << 20;  ///< of all copies
    /// Of a file of the system, such as those below /usr: a package replaces it rarely.
    std::uint64_t max_system_file = std::uint64_t{16} << 20;
  };

  /// `began_ns`: when the recording began, on the clock of file times.
  ModuleKeeper(RecordingDirectory directory, std::int64_t began_ns)
      : directory_(std::move(directory)), began_ns_(began_ns) {}

  /// For RecordedJitOptions::on_module. Several threads may call it.
  void add(const MappedFile& file, const std::shared_ptr<const Module>& module);
  /// Code of a file is in a stack. Others are not copied.
  void mark(const std::string& path, const std::string& build_id);
  /// Copies the files: those of the system after others, and small ones before large ones. A file
  /// that replaced the recorded one meanwhile is left out. If this is root, so is a file that only
  /// its owner may read, unless `ran_as` says that a recorded process ran as the owner.
  void write(const Limits& limits, const std::function<bool(uid_t user)>& ran_as);

  const std::vector<RecordedModule>& modules() const noexcept { return modules_; }
  /// Files that are not of the system, and were not copied because of the limits.
  const std::vector<RecordedModule>& too_large() const noexcept { return too_large_; }
  /// Copies that could not be written.
  const std::vector<Error>& failures() const noexcept { return failures_; }

 private:
  struct Used {
    std::string source;
    std::uint64_t inode = 0;  ///< of the mapping; 0: unknown
    std::shared_ptr<const Module> module;
    bool is_marked = false;
  };
  bool may_copy(const Used& used, const std::function<bool(uid_t user)>& ran_as) const;
  void copy(const Used& used);

  RecordingDirectory directory_;
  std::int64_t began_ns_;
  std::mutex mutex_;
  std::map<std::string, Used> used_;  ///< by build ID, or by path
  std::vector<RecordedModule> modules_, too_large_;
  std::vector<Error> failures_;
};

/// Processes with another /tmp than the caller's, as in containers, or in another pid namespace,
/// whose maps and jitdumps have the name of another pid. Those of a container are gone when its
/// last process ends, unless a descriptor holds the directory. One thread at a time.
class PERFMAP_API ForeignMounts {
 public:
  explicit ForeignMounts(Roots roots = {});
  ForeignMounts(ForeignMounts&&) noexcept;
  ForeignMounts& operator=(ForeignMounts&&) = delete;
  ~ForeignMounts();

  /// Holds the /tmp of such processes; at most 256 of them. To be called again while the processes
  /// live, because they may mount it later. `places` has looked at them, too.
  void look(std::span<const pid_t> pids, const RecordedPlaces& places);
  /// Copies the files of held processes that were recorded and have ended, with their rights. A
  /// file must be regular, have one name, belong to the process's user or root, and not be older
  /// than the process. In the caller's /tmp the process must have written it, or it is lost; if
  /// several processes wrote it at the same time, it is refused. Returns the number of copies.
  std::size_t keep(NameKeeper& keeper, std::span<const ProcessInfo> processes,
                   const RecordedPlaces& places) const;

 private:
  struct Held;
  class Search;
  Roots roots_;
  std::vector<Held> held_;
};

/// Which files a recording leaves outside of its directory.
struct LeftFiles {
  std::vector<Runtime> named = {};  ///< the runtimes whose variables were set
  std::string tmp = "/tmp";
  std::string working_directory = ".";     ///< of the recorded command
  const RecordedPlaces* places = nullptr;  ///< other working directories; borrowed
  const RecordedUsers* users = nullptr;    ///< of the processes; borrowed
  std::int64_t began_ns = 0;               ///< when the recording began, on the clock of file times
  /// Living processes that wrote their map only because they were asked to.
  std::vector<pid_t> asked = {};
};

/// What remove_left_files() did.
struct RemovedFiles {
  std::vector<std::string> paths;
  struct InUse {
    std::string path;
    pid_t pid = 0;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
  };
  std::vector<InUse> in_use = {};  ///< not removed: its process lives
};

/// Removes files that exist only because of the recording: the perf-PID.map and
/// jit-PID.dump in `tmp` that were copied or refused, such dumps in the working directories of
/// processes, and files that a runtime leaves there. A file must be regular, have one link, not be
/// older than the recording, and belong to a user that its process was seen as, or to this user if
/// it was not seen; if it is named by the pid in a namespace, the process must have written it. The
/// process must have ended, or be one of `asked`, and be able to remove the file itself.
PERFMAP_API RemovedFiles remove_left_files(const LeftFiles& left, std::span<const KeptFile> files,
                                           std::span<const ProcessInfo> processes);

/// The facts of recording.json, beside those of the files.
struct RecordingManifest {
  std::vector<std::string> command = {};  ///< the recorded one; empty: living processes
  std::vector<pid_t> pids = {};           ///< the living processes
  std::vector<std::string> perf = {};     ///< the command line of perf
  std::vector<NamingVariable> variables = {};
  int exit_status = 0;  ///< of the command, or of perf if that is not known
  std::vector<MissingFile> missing = {};
};
PERFMAP_API Result<void> write_manifest(const RecordingDirectory& directory,
                                        const RecordingManifest& manifest,
                                        std::span<const KeptFile> files,
                                        std::span<const RecordedModule> modules = {});

}  // namespace perfmap
