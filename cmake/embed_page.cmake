# SPDX-License-Identifier: MIT
# The SHA-256 of a text in base64, as a content security policy needs it.
function(policy_hash text out)
  string(SHA256 hex "${text}")
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(base64 "")
  foreach(at RANGE 0 60 6) # 64 digits: ten groups of six, and one of four
    string(SUBSTRING "${hex}0000" ${at} 6 digits)
    foreach(shift IN ITEMS 18 12 6 0)
      math(EXPR value "(0x${digits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${value} 1 letter)
      string(APPEND base64 ${letter})
    endforeach()
  endforeach()
  string(SUBSTRING ${base64} 0 43 base64)
  set(${out} "${base64}=" PARENT_SCOPE)
endfunction()

# A file of a page without its line of the licence, which the page does not need in each part.
function(read_part file out)
  file(READ ${file} text)
  string(REGEX REPLACE "[^\n]*SPDX-License-Identifier[^\n]*\n" "" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# embed_page(FOLDER/NAME PART...) generates the header FOLDER/NAME.hpp from FOLDER/NAME.html, the
# style NAME.css and the scripts NAME_PART.js...: one self-contained page, whose content security
# policy allows only this style and script, by their hashes. The header has the parts of the page
# before and after {{body}}; only one file includes it.
function(embed_page name)
  set(place ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  set(files ${place}.html ${place}.css)
  set(script "")
  foreach(part IN LISTS ARGN)
    read_part(${place}_${part}.js text)
    string(APPEND script "${text}")
    list(APPEND files ${place}_${part}.js)
  endforeach()
  set(script "\n(() => {\n\"use strict\";\n${script}})();\n")
  read_part(${place}.css style)
  set(style "\n${style}")
  policy_hash("${script}" script_hash)
  policy_hash("${style}" style_hash)
  read_part(${place}.html page)
  foreach(item IN ITEMS script_hash style_hash style script)
    string(REPLACE "{{${item}}}" "${${item}}" page "${page}")
  endforeach()
  string(FIND "${page}" "{{body}}" body_at)
  string(SUBSTRING "${page}" 0 ${body_at} before_body)
  math(EXPR body_at "${body_at} + 8")
  string(SUBSTRING "${page}" ${body_at} -1 after_body)
  file(CONFIGURE OUTPUT ${name}.hpp @ONLY CONTENT [[
#pragma once

#include <string_view>

namespace perfmap {

constexpr std::string_view kBeforeBody = R"perfmap(@before_body@)perfmap";
constexpr std::string_view kAfterBody = R"perfmap(@after_body@)perfmap";

}  // namespace perfmap
]])
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
endfunction()
