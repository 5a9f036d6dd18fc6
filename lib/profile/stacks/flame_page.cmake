# Puts the flame graph page together: one file with its style and script in it, which a content
# security policy allows by their hashes and nothing else.

include(${PROJECT_SOURCE_DIR}/cmake/policy_hash.cmake)

set(script "")
foreach(part IN ITEMS model layout draw page)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/flame_page_${part}.js text)
  string(APPEND script "${text}")
endforeach()
set(script "\n(() => {\n\"use strict\";\n${script}})();\n")
file(READ ${CMAKE_CURRENT_LIST_DIR}/flame_page.css style)
set(style "\n${style}")
policy_hash("${script}" script_hash)
policy_hash("${style}" style_hash)
file(READ ${CMAKE_CURRENT_LIST_DIR}/flame_page.html page)
foreach(name IN ITEMS script_hash style_hash style script)
  string(REPLACE "{{${name}}}" "${${name}}" page "${page}")
endforeach()
string(FIND "${page}" "{{data}}" data_at)
string(SUBSTRING "${page}" 0 ${data_at} before_data)
math(EXPR data_at "${data_at} + 8")
string(SUBSTRING "${page}" ${data_at} -1 after_data)
configure_file(${CMAKE_CURRENT_LIST_DIR}/flame_page.cpp.in
  ${CMAKE_CURRENT_BINARY_DIR}/stacks/flame_page.cpp @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_LIST_DIR}/flame_page.html ${CMAKE_CURRENT_LIST_DIR}/flame_page.css ${CMAKE_CURRENT_LIST_DIR}/flame_page_model.js ${CMAKE_CURRENT_LIST_DIR}/flame_page_layout.js ${CMAKE_CURRENT_LIST_DIR}/flame_page_draw.js
  ${CMAKE_CURRENT_LIST_DIR}/flame_page_page.js)
