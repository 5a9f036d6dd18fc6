#include <algorithm>

#include "answers/lint/line_rules.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kLongLine = std::size_t{64} << 10;

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

/// Reports about parts of one line.
class Line {
 public:
  Line(std::string_view text, const Location& at, Diagnostics& problems)
      : text_(text), at_(at), problems_(problems) {}

  void say(std::size_t position, const Rule& rule, std::string_view message) const {
    problems_.add(rule, {at_.offset + position, at_.line, at_.column + position}, message);
  }

  /// PM004, PM013: how the number is written that starts at `position`. Answers where it ends.
  std::size_t check_number(std::size_t position) const {
    std::string_view digits = text_.substr(position);
    digits = digits.substr(0, digits.find_first_of(" \t,\r"));
    const std::size_t end = position + digits.size();
    if (digits.size() > 1 && digits[0] == '0' && (digits[1] | 0x20) == 'x') {
      say(position, rule::kHexPrefix, "the format has no 0x");
      digits.remove_prefix(2);
    }
    const bool upper =
        std::any_of(digits.begin(), digits.end(), [](char c) { return c >= 'A' && c <= 'F'; });
    if (upper) say(position, rule::kNotCanonicalHex, "upper-case digits");
    if (digits.size() > 1 && digits[0] == '0') {
      say(position, rule::kNotCanonicalHex, "leading zeros");
    }
    return end;
  }

  /// PM005, PM006: what separates two fields, from `position` on. Answers where the next begins.
  std::size_t check_separator(std::size_t position) const {
    const std::size_t start = position;
    bool odd = false;
    if (position < text_.size() && text_[position] == ',') {
      odd = true;
      ++position;
    } else {
      while (position < text_.size() && is_blank(text_[position])) {
        odd = odd || text_[position] == '\t';
        ++position;
      }
    }
    if (odd) say(start, rule::kOddSeparator, "fields are separated by one blank");
    if (position - start > 1) say(start, rule::kExtraBlanks, "more than one blank between fields");
    return position;
  }

 private:
  std::string_view text_;
  const Location& at_;
  Diagnostics& problems_;
};

bool looks_binary(std::string_view line) noexcept {
  std::size_t odd = 0;
  for (const char c : line.substr(0, 256)) {
    odd += static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r' ? 1 : 0;
  }
  return odd > 4;
}

/// Where a line's fields may begin: behind a byte order mark, which only a file's first line has.
std::size_t fields_start(std::string_view line, const Location& at) noexcept {
  return at.offset == 0 && line.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

/// What a line holds is what read_map_line() looks at: all but one carriage return at its end.
std::string_view without_return(std::string_view line) noexcept {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

void check_spelling(const Line& report, std::size_t start, std::size_t content) {
  if (content != start) report.say(start, rule::kLeadingBlank, "a blank before the address");
  const std::size_t size = report.check_separator(report.check_number(content));
  report.check_separator(report.check_number(size));
}

}  // namespace

std::optional<Entry> check_syntax(std::string_view line, const Location& at,
                                  Diagnostics& problems) {
  const Line report(line, at, problems);
  if (line.size() > kLongLine) report.say(0, rule::kNotText, "a line over 64 KiB");
  const std::string_view body = without_return(line);
  if (body.size() != line.size()) {
    report.say(body.size(), rule::kCarriageReturn, "a carriage return before the newline");
  }
  const std::size_t start = fields_start(line, at);
  const std::size_t content = std::min(body.find_first_not_of(" \t", start), body.size());
  if (content == body.size() || body[content] == '#') {
    report.say(start, rule::kCommentOrBlank,
               content == body.size() ? "a blank line" : "a comment: the format has none");
    return std::nullopt;
  }
  const std::optional<Entry> entry = parse_map_line(line, at, problems);
  if (entry) {
    check_spelling(report, start, content);
  } else {
    // Those of an entry are in its name, where check_name() finds them.
    const std::size_t nul = line.find('\0');
    if (nul != std::string_view::npos) report.say(nul, rule::kNulByte, "a NUL byte");
    if (looks_binary(line)) report.say(0, rule::kNotText, "binary data");
  }
  return entry;
}

}  // namespace perfmap::lint_rules
