//! Licences and sources of everything that is built: only the ones listed here, only from crates.io.
//!
//! `cargo tree` gives the licences as the manifests state them, for all targets and features; the lock files give the sources.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Licences that a dependency may be used under (SPDX names).
const ALLOWED: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "MPL-2.0",
    "Unicode-3.0",
    "0BSD",
    "CC0-1.0",
];

/// Packages that are used under another licence, and why that is right.
const EXCEPTIONS: &[(&str, &str)] = &[
    // libFuzzer's own, of the BSD kind; built into the fuzz targets only, which nobody ships.
    ("libfuzzer-sys", "NCSA"),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The workspaces: each has its own lock file.
fn workspaces() -> impl Iterator<Item = std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    [root.to_owned(), root.join("fuzz")].into_iter().filter(|folder| folder.join("Cargo.toml").exists())
}

#[test]
fn every_licence_is_allowed() {
    for workspace in workspaces() {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--offline", "--workspace", "--all-features", "--target", "all"])
            .args(["--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}|{l}"])
            .current_dir(&workspace)
            .output()
            .expect("cargo can be started");
        assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
        let listing = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
        let packages: BTreeSet<&str> = listing.lines().filter(|line| !line.is_empty()).collect();
        assert!(packages.len() > 3, "cargo tree listed only {packages:?}");
        let refused: Vec<_> = packages.iter().filter(|line| !is_allowed(line)).collect();
        assert!(refused.is_empty(), "not under an allowed licence: {refused:#?}");
    }
}

#[test]
fn every_source_is_crates_io() {
    for workspace in workspaces() {
        let lock = std::fs::read_to_string(workspace.join("Cargo.lock")).expect("Cargo.lock is checked in");
        let foreign = foreign_sources(&lock);
        assert!(foreign.is_empty(), "not from crates.io: {foreign:#?}");
    }
}

#[test]
fn planted_faults_are_caught() {
    for sound in [
        "a v1.0.0|MIT",
        "a v1.0.0|MIT/GPL-3.0 (*)",
        "a v1.0.0|(MIT OR Apache-2.0) AND Unicode-3.0",
        "a v1.0.0|GPL-2.0 OR (ISC AND BSD-3-Clause)",
        "a v1.0.0 (proc-macro)|Apache-2.0 WITH LLVM-exception",
        "libfuzzer-sys v0.4.13|(MIT OR Apache-2.0) AND NCSA",
    ] {
        assert!(is_allowed(sound), "{sound}");
    }
    for wrong in [
        "a v1.0.0|",
        "a v1.0.0|GPL-3.0",
        "a v1.0.0|MIT AND GPL-3.0",
        "a v1.0.0|(MIT OR ISC) AND (GPL-3.0 OR NCSA)",
        "a v1.0.0|GPL-2.0 WITH LLVM-exception",
        "a v1.0.0|MIT OR",
    ] {
        assert!(!is_allowed(wrong), "{wrong}");
    }
    let lock =
        "[[package]]\nname = \"a\"\nsource = \"git+https://example.org/a\"\n[[package]]\nname = \"b\"\nsource = \"";
    assert_eq!(foreign_sources(&format!("{lock}{CRATES_IO}\"\n")).len(), 1);
}

/// The `source` lines of a lock file that do not name crates.io. Packages of the workspace itself have none.
fn foreign_sources(lock: &str) -> Vec<&str> {
    lock.lines().filter(|line| line.starts_with("source = ") && *line != format!("source = \"{CRATES_IO}\"")).collect()
}

/// Whether a line `name version ...|licence expression` of the listing names licences that may be used.
fn is_allowed(line: &str) -> bool {
    let Some((package, licence)) = line.split_once('|') else { return false };
    let name = package.split(' ').next().expect("split gives at least one part");
    let licence = licence.trim_end_matches(" (*)").replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut tokens = licence.split_whitespace().peekable();
    let allowed = any_of(&mut tokens, name);
    allowed == Some(true) && tokens.next().is_none()
}

type Tokens<'a, 'b> = &'a mut std::iter::Peekable<std::str::SplitWhitespace<'b>>;

/// `A OR B`: one suffices. `None` for what is no expression.
fn any_of(tokens: Tokens<'_, '_>, package: &str) -> Option<bool> {
    let mut allowed = all_of(tokens, package)?;
    while tokens.next_if_eq(&"OR").is_some() {
        allowed |= all_of(tokens, package)?;
    }
    Some(allowed)
}

/// `A AND B`: both are needed.
fn all_of(tokens: Tokens<'_, '_>, package: &str) -> Option<bool> {
    let mut allowed = single(tokens, package)?;
    while tokens.next_if_eq(&"AND").is_some() {
        allowed &= single(tokens, package)?;
    }
    Some(allowed)
}

/// A licence, with its exception if it has one, or an expression in parentheses.
fn single(tokens: Tokens<'_, '_>, package: &str) -> Option<bool> {
    let mut licence = tokens.next()?.to_owned();
    if licence == "(" {
        let allowed = any_of(tokens, package)?;
        return (tokens.next()? == ")").then_some(allowed);
    }
    if tokens.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", tokens.next()?);
    }
    Some(ALLOWED.contains(&licence.as_str()) || EXCEPTIONS.contains(&(package, licence.as_str())))
}
