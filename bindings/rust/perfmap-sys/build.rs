// SPDX-License-Identifier: MIT
//! Links libperfmap: from the directories of PERFMAP_LIBRARY_PATH (with ':' between them), or from
//! where pkg-config says, or from where the linker looks.
use std::env;
use std::process::Command;

fn directories() -> Vec<String> {
    if let Ok(places) = env::var("PERFMAP_LIBRARY_PATH") {
        return places.split(':').filter(|place| !place.is_empty()).map(String::from).collect();
    }
    let answer = Command::new("pkg-config").args(["--variable=libdir", "perfmap"]).output();
    match answer {
        Ok(output) if output.status.success() => {
            vec![String::from_utf8_lossy(&output.stdout).trim().to_string()]
        }
        _ => Vec::new(),
    }
}

fn main() {
    println!("cargo:rerun-if-env-changed=PERFMAP_LIBRARY_PATH");
    println!("cargo:rerun-if-changed=build.rs");
    for place in directories() {
        println!("cargo:rustc-link-search=native={place}");
    }
    println!("cargo:rustc-link-lib=dylib=perfmap");
    if env::var_os("CARGO_FEATURE_PROFILE").is_some() {
        println!("cargo:rustc-link-lib=dylib=perfmap-profile");
    }
}
