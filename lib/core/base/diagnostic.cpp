#include "perfmap/diagnostic.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <system_error>

#include "perfmap/doubt.hpp"
#include "perfmap/result.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {

bool Diagnostics::count(const Rule& rule) noexcept {
  if (ignores(rule)) return false;
  ++total_;
  std::uint64_t& seen = counts_[rule.ordinal];
  return ++seen <= limit_ || limit_ == 0;
}

void Diagnostics::add(const Rule& rule, const Location& where, std::string_view message,
                      std::uint64_t related_line) {
  if (count(rule)) keep({&rule, where, std::string(message), related_line});
}

std::uint64_t Diagnostics::count_of(const Rule& rule) const noexcept {
  return counts_[rule.ordinal];
}

std::uint64_t Diagnostics::total(Severity severity) const noexcept {
  std::uint64_t sum = 0;
  for (const Rule* rule : rule::all()) {
    if (rule->severity == severity) sum += counts_[rule->ordinal];
  }
  return sum;
}

namespace rule {

namespace {

constexpr std::array kAll = {
    &kTooFewFields,     &kBadAddress,      &kBadSize,         &kHexPrefix,
    &kExtraBlanks,      &kOddSeparator,    &kCarriageReturn,  &kGluedLines,
    &kNoFinalNewline,   &kNulByte,         &kCommentOrBlank,  &kLeadingBlank,
    &kNotCanonicalHex,  &kSignedNumber,    &kNotText,         &kShortName,
    &kLongName,         &kCutName,         &kBlankAtNameEnd,  &kNotUtf8,
    &kControlByte,      &kSemicolon,       &kMangledName,     &kInlineChain,
    &kManyRanges,       &kNoName,          &kDeceptiveName,   &kForeignOwner,
    &kWritableByOthers, &kNotRegularFile,  &kUnreadable,      &kOlderThanProcess,
    &kNoProcess,        &kOtherPidInName,  &kHugeFile,        &kEmptyFile,
    &kEncodedFile,      &kOddDirectory,    &kNoScripts,       &kNoFramePointers,
    &kOldSnapshot,      &kOnlyStubs,       &kNoMapAfterFork,  &kMixedProducers,
    &kReusedStart,      &kDuplicate,       &kOverlap,         &kNested,
    &kShadowed,         &kSizeZero,        &kHugeSize,        &kAddressWrap,
    &kOddAddress,       &kDecimalSizes,    &kNotExecutable,   &kOverElfFile,
    &kNotSorted,        &kReuseRate,       &kNotJitdump,      &kForeignOrder,
    &kOddVersion,       &kBadHeaderSize,   &kReservedFlags,   &kTscTimes,
    &kUnknownMachine,   &kForeignPid,      &kOddDumpName,     &kNoMarker,
    &kDamagedRecord,    &kUnknownRecord,   &kLoadSizes,       &kUnendedName,
    &kOddLoadName,      &kOddCodeSize,     &kOddVma,          &kReusedIndex,
    &kOddMove,          &kOddDebugInfo,    &kBadLines,        &kUnwindingSizes,
    &kBadUnwinding,     &kUnalignedCode,   &kMissingLines,    &kOddClose,
    &kTimeGoesBack,     &kOtherClock,      &kNoTimes,         &kOverlappingCode,
    &kOddPadding,       &kOddThread,       &kManyLoads,       &kOtherName,
    &kOnlyInOne,        &kTwoMaps,         &kUnnamedSamples,  &kOlderThanRecording,
    &kTickRunsBack,     &kUnopenedSection, &kUnendedSection,  &kOddTick,
    &kUnnamedLoop,      &kOtherLoop,       &kTooManySections, &kOddCode,
};
static_assert(kAll.size() <= Diagnostics::kRules);

constexpr bool ordinals_are_positions() {
  for (std::size_t i = 0; i < kAll.size(); ++i) {
    if (kAll[i]->ordinal != i) return false;
  }
  return true;
}
static_assert(ordinals_are_positions());

}  // namespace

std::span<const Rule* const> all() noexcept { return kAll; }

const Rule* find(std::string_view id) noexcept {
  for (const Rule* rule : kAll) {
    if (rule->id == id) return rule;
  }
  return nullptr;
}

}  // namespace rule

namespace {

struct Kind {
  std::string_view name;
  std::string_view explanation;
};

constexpr std::array<Kind, kDoubtCount> kKinds = {{
    {"damaged-record", "the record that names this code contradicts itself (see 'perfmap lint')"},
    {"clamped-range", "the size of this code was cut to what its file has (see 'perfmap lint')"},
    {"reused-address",
     "several entries of the map name this address, and a map has no times: the last one counts"},
    {"guessed-owner",
     "the process is gone: its file was accepted because of its owner and times, or was written "
     "after the process had ended"},
    {"guessed-call",
     "the code before this return address is not known: it may belong to the next function"},
    {"scanned-frame", "this frame was found by a scan of the stack and may not be a caller"},
    {"stitched-frame", "this frame comes from another sample of the same thread"},
    {"remapped-memory",
     "the name is that of the parent process, and the process may have mapped this memory again "
     "since the fork"},
    {"unrecorded-memory",
     "the recording has no executable mapping at this address, as after mremap(), and the name has "
     "no time: the memory may have been used for something else"},
}};

const Kind& kind_of(Doubt one) noexcept {
  return kKinds[static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(one)))];
}

}  // namespace

std::string_view to_string(Doubt one) noexcept { return kind_of(one).name; }

std::string_view explain(Doubt one) noexcept { return kind_of(one).explanation; }

std::string to_string(Doubts doubts) {
  std::string text;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (!doubts.has(doubt_at(i))) continue;
    if (!text.empty()) text += ',';
    text += to_string(doubt_at(i));
  }
  return text;
}

Error system_error(std::string what, int sys_errno) {
  what += ": ";
  what += std::generic_category().message(sys_errno);
  return {sys_errno == ENOENT ? Errc::not_found : Errc::io, std::move(what), sys_errno, {}};
}

}  // namespace perfmap
