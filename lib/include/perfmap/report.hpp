// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// "info", "warning", "error".
PERFMAP_API std::string_view to_string(Severity severity) noexcept;

/// The format of compilers, for editors and CI: `FILE:LINE:COL: warning: MESSAGE [PM101]` and a
/// newline; info is `note`. Columns count bytes from 1; a place in a file without lines (line 0) is
/// `FILE:+0xOFFSET:`. Here and below, control bytes, invalid UTF-8 and the bytes of invisible
/// characters are shown as \xNN.
PERFMAP_API std::string to_gcc(const Diagnostic& diagnostic, std::string_view file);

/// For a terminal: that line, the line of the input, a caret below it, and whether --fix fixes it:
///
///     perf-42.map:2:1: warning: the format has no 0x prefix [PM004]
///       0x7f3529fcf759 b py::bar
///       ^ --fix repairs this
///
/// `input` is the text that was checked. Only the part of a long line around the caret is shown,
/// and no line if the rule is about the file.
PERFMAP_API std::string to_pretty(const Diagnostic& diagnostic, std::string_view file,
                                  std::string_view input, bool color);

/// A workflow command of GitHub Actions: `::warning file=F,line=L,col=C,title=PM101::MESSAGE`, and
/// without lines `::warning file=F,title=JD105::+0xOFFSET: MESSAGE`.
PERFMAP_API std::string to_github(const Diagnostic& diagnostic, std::string_view file);

/// One change of a jitdump on a line: `FILE:+0xOFFSET: what [JD208]`. Offsets are those in the
/// original dump.
PERFMAP_API std::string to_text(const DumpChange& change, std::string_view file);

/// The findings of one file, for reports that cover several.
struct FileFindings {
  std::string file;
  std::string_view input;  ///< the text, for columns in code points and fixes
  const Diagnostics* findings = nullptr;
  const Jitdump* dump = nullptr;  ///< if the file is one: for fixes
};

/// {"schema":"perfmap.lint/1","findings":[…],"summary":{…}} and a newline. In a file without lines,
/// a finding's line and column are 0, and its offset is its place.
PERFMAP_API std::string to_lint_json(const std::vector<FileFindings>& files);
/// One object per finding and line, without summary.
PERFMAP_API std::string to_lint_jsonl(const std::vector<FileFindings>& files);
/// GitHub refuses a SARIF run with more results.
inline constexpr std::size_t kMaxSarifResults = 25'000;

/// SARIF 2.1.0, one run, with what GitHub's code scanning requires. `version` is the program's.
/// `docs` is the URI of the folder with README.md and docs/diagnostics.md. In a file without lines
/// a region is a byteOffset; its startLine, which GitHub requires, is 1.
///
/// Of more than kMaxSarifResults findings, those of the highest levels are results, and those of
/// the first files. A notification of the run says how many findings are no results, also because
/// the Diagnostics did not keep them.
///
/// A result has a fix if a change of its line, or of its record and those that refer to it, fixes
/// it. Its fingerprint is made of the rule and the name of the entry, not of the address, which
/// differs in each run of a program.
PERFMAP_API std::string to_sarif(const std::vector<FileFindings>& files, std::string_view version,
                                 std::string_view docs);

/// How each runtime of the catalogue is started so that its code has names: a table, and
/// {"schema":"perfmap.runtimes/1","runtimes":[…]}.
PERFMAP_API void write_runtimes_text(OutputFile& out);
PERFMAP_API void write_runtimes_json(OutputFile& out);

/// Bytes in double quotes, as GNU diff and git quote file names: what append_visible() would escape
/// becomes \NNN in octal, byte by byte, and a quote or backslash gets a backslash. So it is one
/// line, and every text has its own form. O(bytes).
PERFMAP_API std::string quoted(std::string_view bytes);

/// The unified diff from `before` to `after`, with three lines of context, for patch(1); empty if
/// they are equal. Small differences are exact; if the texts differ so much that this would take
/// long, the part between their common beginning and end is replaced as a whole. `name` is the
/// file's in the header: quoted(), if that differs from it in more than the quotes.
PERFMAP_API std::string unified_diff(std::string_view before, std::string_view after,
                                     std::string_view name);

}  // namespace perfmap
