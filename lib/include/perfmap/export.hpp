#pragma once

/// Marks what libperfmap.so exports. Everything else in it is hidden.
#define PERFMAP_API __attribute__((visibility("default")))
