//! Layering: which module may name which. A lower layer never names a higher one.

use crate::source::{Complaints, SourceFile};

/// The layers from the lowest up, as path prefixes below `src`. The longest prefix that fits a file or a named module decides.
const LAYERS: &[&[&str]] = &[
    &["clock", "epoch", "glob", "limits", "random", "sync"],
    &["types"],
    &["store"],
    &["txn"],
    // The data commands, and replies: the top of the core.
    &["resp", "command"],
    &["pubsub"],
    &["script"],
    &["server", "session", "config"],
    // The commands about clients and the server, and what they are given.
    &[
        "command/context",
        "command/dispatch",
        "command/exec",
        "command/family/command",
        "command/family/config",
        "command/family/connection",
        "command/family/debug",
        "command/family/function",
        "command/family/info",
        "command/family/pubsub",
        "command/family/scripting",
        "command/family/server",
        "command/family/tracking",
        "command/scripting",
        "command/family/transaction",
    ],
    &["net"],
    &["lib", "main"],
];

/// Complains about each place in `file` that names a module of a higher layer.
pub fn check(file: &SourceFile, complaints: &mut Complaints) {
    let module = file.path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    let Some(own) = layer(module) else {
        complaints.at(file, 1, "stands in no layer: name it in tests/tidy/layers.rs");
        return;
    };
    let parents: Vec<&str> = {
        let mut parts: Vec<&str> = module.split('/').collect();
        if module == "lib" || module == "main" {
            parts.clear();
        }
        parts
    };
    for (line, column) in occurrences(&file.code, "crate::").chain(occurrences(&file.code, "caswell::")) {
        for named in first_segments(&file.code[column..]) {
            judge(file, line, own, &named, complaints);
        }
    }
    // `super::` from a file's own top level; inside an inline module (its tests) it means the file itself, which is harmless.
    for (line, column) in occurrences(&file.code, "super::") {
        let before = &file.code[..column - "super::".len()];
        let rest = &file.code[column..];
        let hops = 1 + rest.split("super::").take_while(|part| part.is_empty()).count();
        if before.ends_with("super::") || hops != parents.len() {
            continue;
        }
        for named in first_segments(&rest[(hops - 1) * "super::".len()..]) {
            judge(file, line, own, &named, complaints);
        }
    }
}

fn judge(file: &SourceFile, line: usize, own: usize, named: &str, complaints: &mut Complaints) {
    // The root re-exports nothing, so a name that is no layer is a macro or an item of the file itself.
    if let Some(other) = layer(named).filter(|&other| other > own) {
        complaints.at(file, line, &format!("names `{named}` of layer {other} from layer {own}"));
    }
}

/// The layer of a module path (`command/family/string`).
fn layer(module: &str) -> Option<usize> {
    let fits = |prefix: &str| module == prefix || module.starts_with(&format!("{prefix}/"));
    LAYERS
        .iter()
        .enumerate()
        .flat_map(|(rank, prefixes)| prefixes.iter().map(move |prefix| (rank, *prefix)))
        .filter(|(_, prefix)| fits(prefix))
        .max_by_key(|(_, prefix)| prefix.len())
        .map(|(rank, _)| rank)
}

/// Line number and byte position behind each place where the path prefix `what` stands alone.
fn occurrences<'a>(code: &'a str, what: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    code.match_indices(what)
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .map(move |(at, _)| (1 + code[..at].matches('\n').count(), at + what.len()))
}

/// The modules that a path names first: one, or those of a group in braces.
fn first_segments(path: &str) -> Vec<String> {
    let identifier = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = path.strip_prefix('{') else { return vec![identifier(path)] };
    let (mut depth, mut named, mut expects_name) = (0, Vec::new(), true);
    for (at, character) in group.char_indices() {
        match character {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => expects_name = true,
            c if expects_name && (c.is_alphanumeric() || c == '_') => {
                named.push(identifier(&group[at..]));
                expects_name = false;
            }
            _ => {}
        }
    }
    named
}

#[test]
fn a_planted_upward_name_is_caught() {
    for (path, text) in [
        ("src/store/table.rs", "use crate::txn::Transaction;"),
        ("src/store/mod.rs", "use crate::{\n    epoch::Guard,\n    net::Listener,\n};"),
        ("src/types/list.rs", "fn f() { crate::store::g() }"),
        ("src/types/list.rs", "use super::super::store::Store;"),
        ("src/sync.rs", "use super::types::View;"),
        ("src/command/family/string.rs", "use crate::session::Session;"),
    ] {
        let mut complaints = Complaints::default();
        check(&SourceFile::new(path, text), &mut complaints);
        complaints.assert_one("names `");
    }
    let mut complaints = Complaints::default();
    check(&SourceFile::new("src/attic/mod.rs", ""), &mut complaints);
    complaints.assert_one("no layer");
}

#[test]
fn names_of_one_layer_and_below_pass() {
    let mut complaints = Complaints::default();
    let text = "//! As crate::net does.\nuse crate::{limits::X, store::{Store, Worker}};\nuse super::gate;\nmod tests { use super::super::commit; }";
    check(&SourceFile::new("src/txn/commit.rs", text), &mut complaints);
    check(&SourceFile::new("src/command/family/server.rs", "use crate::session::Session;"), &mut complaints);
    complaints.assert_none();
}
