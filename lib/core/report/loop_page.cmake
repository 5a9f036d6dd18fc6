# Puts the frame of the page of loops together: what stands before and behind its body, with the
# style, which a content security policy allows by its hash and nothing else.
include(${PROJECT_SOURCE_DIR}/cmake/policy_hash.cmake)

file(READ ${CMAKE_CURRENT_LIST_DIR}/loop_page.css style)
set(style "\n${style}")
policy_hash("${style}" style_hash)
file(READ ${CMAKE_CURRENT_LIST_DIR}/loop_page.html page)
foreach(name IN ITEMS style_hash style)
  string(REPLACE "{{${name}}}" "${${name}}" page "${page}")
endforeach()
string(FIND "${page}" "{{body}}" body_at)
string(SUBSTRING "${page}" 0 ${body_at} before_body)
math(EXPR body_at "${body_at} + 8")
string(SUBSTRING "${page}" ${body_at} -1 after_body)
configure_file(${CMAKE_CURRENT_LIST_DIR}/loop_page_frame.cpp.in
  ${CMAKE_CURRENT_BINARY_DIR}/core/report/loop_page_frame.cpp @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/loop_page.html ${CMAKE_CURRENT_LIST_DIR}/loop_page.css)
