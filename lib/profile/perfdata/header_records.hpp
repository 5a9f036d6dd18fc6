#pragma once

#include <string_view>

#include "perfdata/description.hpp"
#include "perfdata/record_header.hpp"

namespace perfmap {

/// Takes in what a record says about the recording: HEADER_ATTR, EVENT_UPDATE, HEADER_FEATURE,
/// BUILD_ID and TIME_CONV do, others are passed by.
void read_header_record(const RecordHeader& header, std::string_view record,
                        Description& description);

}  // namespace perfmap
