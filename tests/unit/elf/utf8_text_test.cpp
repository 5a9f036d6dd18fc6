// SPDX-License-Identifier: MIT
#include "elf/demangle.hpp"
#include "support/catch.hpp"

namespace perfmap::utf8_text_test {

TEST_CASE("Punycode is decoded as in RFC 3492", "[demangle]") {
  CHECK(decode_punycode("gre_6ka8i") ==
        "gr\xc3\xb6\xc3\x9f"
        "e");
  CHECK(decode_punycode("ihqwcrb4cv8a8dqg056pqjye") ==
        "\xe4\xbb\x96\xe4\xbb\xac\xe4\xb8\xba\xe4\xbb\x80\xe4\xb9\x88\xe4\xb8\x8d\xe8\xaf\xb4\xe4"
        "\xb8\xad\xe6\x96\x87");
  CHECK(decode_punycode("0y0c") == "\xee\x80\x80");
  CHECK(decode_punycode("hb9b") == "\xed\x9f\xbf");
  CHECK(decode_punycode("dn32g") == "\xf4\x8f\xbf\xbf");
  CHECK_FALSE(decode_punycode("99999999999"));
  CHECK_FALSE(decode_punycode("_UPPER"));
}

}  // namespace perfmap::utf8_text_test
