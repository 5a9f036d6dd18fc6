#include "perfmap/diagnostic.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include "perfmap/rules.hpp"
#include "perfmap/types.hpp"

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

Error system_error(std::string what, int sys_errno) {
  what += ": ";
  what += std::generic_category().message(sys_errno);
  return {sys_errno == ENOENT ? Errc::not_found : Errc::io, std::move(what), sys_errno, {}};
}

}  // namespace perfmap
