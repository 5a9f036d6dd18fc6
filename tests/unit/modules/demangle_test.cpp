#include "modules/demangle.hpp"

#include <random>

#include "modules/utf8_text.hpp"
#include "support/catch.hpp"

namespace perfmap {
namespace {

/// The name, or what it is called.
std::string said(std::string_view name) { return demangle(name).value_or(std::string(name)); }

constexpr const char* kRustNames[] = {
    "_RNvNtCs123_4core3fmt5write",
    "_RINvCs6GmmlP4bgsG_1r3genTRDG_INtNtNtCs_4core3ops8function2FnTRL0_hEEp6OutputB1b_EL_EEB2_",
    "_RNvMCs1_1rINtB2_2I8Kan5_E1q",
    "_RNCNvXs_CsbQ_1rRShNtB4_2Tr2go0B4_",
    "_RNvNtCs6GmmlP4bgsG_1ru9gre_6ka8iu8nave_6pa",
};

/// A reference to a part of a Rust name, whose offset does not count "_R".
std::string back_to(std::size_t offset) {
  static constexpr char kDigits[] =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (offset == 0) return "B_";
  std::string digits;
  for (std::size_t rest = offset - 1; digits.empty() || rest != 0; rest /= 62) {
    digits.insert(digits.begin(), kDigits[rest % 62]);
  }
  return "B" + digits + "_";
}

/// Each argument is a tuple that has the one before it twice.
std::string doubled_tuples(int times) {
  std::string name = "_RINvC1f1gTuuE";
  for (int i = 0; i < times; ++i) {
    const std::string back = back_to(name.rfind('T') - 2);
    name += "T" + back + back + "E";
  }
  return name + "E";
}

}  // namespace

TEST_CASE("C++ names are demangled, and keep what was appended", "[demangle]") {
  CHECK(said("_ZN1a1bEi") == "a::b(int)");
  CHECK(said("_Z1fv@plt") == "f()@plt");
  CHECK(said("_Z1fv@@VERSION_1.2") == "f()@@VERSION_1.2");
  CHECK(said("_Z1fv.cold") == "f() [clone .cold]");
  CHECK_FALSE(demangle("main"));
  CHECK_FALSE(demangle("i"));  // which would be "int"
  CHECK_FALSE(demangle("_Znonsense"));
  CHECK_FALSE(demangle(""));
}

TEST_CASE("Rust's older names lose their hash and their escapes", "[demangle]") {
  CHECK(said("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE") == "core::fmt::Formatter::pad");
  CHECK(said("_ZN4core3fmt5write17h0123456789abcdefE.llvm.1234") == "core::fmt::write");
  CHECK(said("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
             "17h930b740aa94f1d3aE") == "<Test + 'static as foo::Bar<Test>>::bar");
  CHECK(said("_ZN5$u7e$17h0123456789abcdefE") == "~");
  CHECK(said("_ZN4$no$17h0123456789abcdefE") == "$no$");
  CHECK(said("_ZN3foo17h0123456789abcdeE") == "_ZN3foo17h0123456789abcdeE");
  CHECK(said("_ZN3foo17hello_this_is_lonE") == "foo::hello_this_is_lon");
}

TEST_CASE("Rust's newer names are said as source text does", "[demangle]") {
  CHECK(said(kRustNames[0]) == "core::fmt::write");
  CHECK(said("_RINvCs1_1r3genThEEB2_") == "r::gen::<(u8,)>");
  CHECK(said("_RINvC1r3genAAtj3_j4_E") == "r::gen::<[[u16; 3]; 4]>");
  CHECK(said("_RINvC1r3genFUKChOaEzE") == "r::gen::<unsafe extern \"C\" fn(u8, *mut i8) -> !>");
  CHECK(said("_RINvC1r3genFG0_RL1_hQL0_hEB2_E") ==
        "r::gen::<for<'a, 'b> fn(&'a u8, &'b mut u8) -> r>");
  CHECK(said("_RINvC1r3genKb1_Kc78_Kan5_E") == "r::gen::<true, 'x', -5>");
  CHECK(said("_RNCNvC1r4main0") == "r::main::{closure#0}");
  CHECK(said("_RNCNvC1r4mains_0") == "r::main::{closure#1}");
  CHECK(said("_RNvXC1rNtB2_1SNtB2_2Tr2go") == "<r::S as r::Tr>::go");
  CHECK(said("_RNvMC1rNtB2_1S2go.llvm.77") == "<r::S>::go");
  CHECK(said(kRustNames[4]) ==
        "r::gr\xc3\xb6\xc3\x9f"
        "e::na\xc3\xafve");
  CHECK_FALSE(demangle("_R"));
  CHECK_FALSE(demangle("_RNvC1r"));
  CHECK_FALSE(demangle("_RNvC1r99f"));
  CHECK_FALSE(demangle("_RNvC1r1fx"));
}

TEST_CASE("names that would say gigabytes are left as they are", "[demangle][hostile]") {
  // Each template is one of the former with itself: X<X<A, A>, X<A, A>> and so on.
  std::string doubling = "_Z1f1A1XIS_S_E";
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (std::size_t i = 1; i < 34; ++i) {
    doubling += std::string("S0_IS") + digits[i] + "_S" + digits[i] + "_E";
  }
  CHECK_FALSE(is_reasonable_cxx_name(doubling));
  CHECK_FALSE(demangle(doubling));
  CHECK_FALSE(demangle("_Z" + std::string(10000, 'P')));
  CHECK_FALSE(is_reasonable_cxx_name("_Z1fIJ" + std::string(200, 'i') + "EEvDp1XIDp1YIDpT_EE"));
  CHECK(is_reasonable_cxx_name(
      "_ZSt4moveIRKNSt6vectorIiSaIiEEEEONSt16remove_referenceIT_E4typeEOS7_"));

  CHECK(demangle(doubled_tuples(2)) ==
        "f::g::<((), ()), (((), ()), ((), ())), "
        "((((), ()), ((), ())), (((), ()), ((), ())))>");
  CHECK_FALSE(demangle(doubled_tuples(40)));
  CHECK_FALSE(demangle("_RINvC1f1gB_E"));
  CHECK_FALSE(demangle("_R" + std::string(3000, 'I')));
  CHECK_FALSE(demangle("_RINvC1f1g" + std::string(3000, 'S') + "uE"));
}

TEST_CASE("damaged names do no harm", "[demangle][hostile]") {
  std::mt19937 random(11);
  const std::string alphabet = "BCDEFGIKLMNQRSTXY_0123abcdehjnpsuvz";
  std::size_t readable = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string name = kRustNames[random() % std::size(kRustNames)];
    for (unsigned i = random() % 4; i > 0; --i) {
      const std::size_t at = 2 + random() % (name.size() - 2);
      if (random() % 3 == 0) {
        name.insert(at, name.substr(2 + random() % (name.size() - 2), random() % 12));
      } else {
        name[at] = alphabet[random() % alphabet.size()];
      }
    }
    const auto answer = demangle(name);
    readable += answer.has_value();
    if (answer && answer->size() > 65536) FAIL("too long an answer");
  }
  CHECK(readable > 4000);
}

TEST_CASE("Punycode is decoded by the rules of its RFC", "[demangle]") {
  CHECK(decode_punycode("gre_6ka8i") ==
        "gr\xc3\xb6\xc3\x9f"
        "e");
  CHECK(decode_punycode("ihqwcrb4cv8a8dqg056pqjye") ==
        "\xe4\xbb\x96\xe4\xbb\xac\xe4\xb8\xba\xe4\xbb\x80\xe4\xb9\x88\xe4\xb8\x8d\xe8\xaf\xb4\xe4"
        "\xb8\xad\xe6\x96\x87");
  CHECK_FALSE(decode_punycode("99999999999"));
  CHECK_FALSE(decode_punycode("_UPPER"));
}

}  // namespace perfmap
