#include "perfmap/rules.hpp"

#include <array>

namespace perfmap::rule {
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

}  // namespace perfmap::rule
