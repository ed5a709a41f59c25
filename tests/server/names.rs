//! Every setting that real servers know, ours knows too.

use std::path::{Path, PathBuf};

use caswell::config::table;

use crate::harness::{Directory, Process};

/// A server to ask, from an environment variable or else by name. `None`, with a message, if there is none and the
/// environment says that this is all right.
fn oracle(variable: &str, name: &str) -> Option<PathBuf> {
    let in_path = |name: &str| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
    };
    let found = std::env::var_os(variable).map(PathBuf::from).or_else(|| in_path(name));
    if found.is_none() {
        let optional = std::env::var_os("CASWELL_ORACLES_OPTIONAL").is_some();
        assert!(optional, "set {variable} to a server's path, or CASWELL_ORACLES_OPTIONAL to do without");
        eprintln!("{variable} is not set: that server's settings are not compared");
    }
    found
}

/// Asserts that every name of the server's CONFIG GET * is in our table.
fn compare(program: &Path, name: &str) {
    let directory = Directory::new(name);
    let process = Process::start(program, &directory, &["--save", ""]);
    let names = process.connect().run("CONFIG GET *").texts();
    assert!(names.len() > 300, "{name} has some hundred settings: {}", names.len());
    let unknown: Vec<&String> = names.iter().step_by(2).filter(|name| table::find(name.as_bytes()).is_none()).collect();
    assert!(unknown.is_empty(), "{} knows {unknown:?}", program.display());
}

#[test]
fn of_redis() {
    if let Some(program) = oracle("CASWELL_REDIS_SERVER", "redis-server") {
        compare(&program, "names-redis");
    }
}

#[test]
fn of_valkey() {
    if let Some(program) = oracle("CASWELL_VALKEY_SERVER", "valkey-server") {
        compare(&program, "names-valkey");
    }
}

#[test]
fn of_the_packaged_configuration_file() {
    // Debian's file, where the package is installed: every directive in it, commented out or not.
    let Ok(text) = std::fs::read_to_string("/etc/redis/redis.conf") else {
        eprintln!("there is no /etc/redis/redis.conf to compare with");
        return;
    };
    let known = |name: &str| {
        table::find(name.as_bytes()).is_some() || table::DIRECTIVES.iter().any(|(directive, ..)| *directive == name)
    };
    let active = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let unknown: Vec<&str> = active.filter_map(|line| line.split(' ').next()).filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
