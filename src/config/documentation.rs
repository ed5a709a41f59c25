//! Makes `docs/configuration.md` from the table. A test proves that the page is fresh; run it with
//! `CASWELL_WRITE_DOCUMENTATION=1` to write it anew. The page itself:
//!
#![doc = include_str!("../../docs/configuration.md")]

use super::setting::{Change, Effect, Setting};
use super::table;

const INTRODUCTION: &str = "\
# Configuration

`caswell [redis.conf] [-] [--directive value ...]` takes what `redis-server` takes: a file, standard input (`-`) and directives, of
which the last one stands. `CONFIG GET`, `CONFIG SET` and `CONFIG REWRITE` work as in Redis. This page is made from the table of settings in
`src/config/table`; do not edit it.

Bytes may have a unit: `1k` is 1000 and `1kb` 1024, likewise `m`, `mb`, `g` and `gb`. *Changes* tells when a setting may change: `always` by CONFIG
SET, `protected` by CONFIG SET if `enable-protected-configs` allows it, `start` by the file and the command line only.
";

/// The page `docs/configuration.md`.
pub fn page() -> String {
    let mut text = String::from(INTRODUCTION);
    for topic in table::TOPICS {
        let done: Vec<&Setting> = topic.settings.iter().filter(|setting| setting.effect == Effect::Done).collect();
        if done.is_empty() {
            continue;
        }
        text.push_str(&format!("\n## {}\n\n| Setting | Values | Default | Changes | Meaning |\n", topic.title));
        text.push_str("| --- | --- | --- | --- | --- |\n");
        for setting in done {
            let (kind, doc) = (setting.kind.describe(), cell(setting.doc));
            let line =
                format!("| {} | {kind} | {} | {} | {doc} |\n", names(setting), default(setting), change(setting));
            text.push_str(&line);
        }
    }
    text.push_str(
        "\n## Accepted without effect\n\nFiles and tools written for Redis or Valkey may set these; values are checked, kept and shown, and change \
         nothing.\n\n| Setting | Meaning elsewhere | Why it has no effect |\n| --- | --- | --- |\n",
    );
    for setting in table::rows() {
        if let Effect::None(reason) = setting.effect {
            text.push_str(&format!("| {} | {} | {} |\n", names(setting), cell(setting.doc), cell(reason)));
        }
    }
    text.push_str(
        "\n## Refused\n\nAny other value than those listed is refused with a message, because it would promise what this version does not do.\n\n\
         | Setting | Accepted | Why |\n| --- | --- | --- |\n",
    );
    for setting in table::rows() {
        if let Effect::Only(values, reason) = setting.effect {
            let values: Vec<String> = values.iter().map(|value| code(value)).collect();
            text.push_str(&format!("| {} | {} | {} |\n", names(setting), values.join(", "), cell(reason)));
        }
    }
    text.push_str("\n## Directives that are no settings\n\n| Directive | Works | Meaning |\n| --- | --- | --- |\n");
    for (name, works, doc) in table::DIRECTIVES {
        let works = if *works { "yes" } else { "refused" };
        text.push_str(&format!("| `{name}` | {works} | {} |\n", cell(doc)));
    }
    text
}

fn names(setting: &Setting) -> String {
    if setting.alias.is_empty() {
        code(setting.name)
    } else {
        format!("{}, {}", code(setting.name), code(setting.alias))
    }
}

fn default(setting: &Setting) -> String {
    match setting.default {
        "(cores)" => "one per core".into(),
        "(current)" => "where it was started".into(),
        default => code(default),
    }
}

fn change(setting: &Setting) -> &'static str {
    match setting.change {
        Change::Always => "always",
        Change::Protected => "protected",
        Change::Start => "start",
    }
}

/// A value in code font; the empty one as a pair of quotes.
fn code(text: &str) -> String {
    if text.is_empty() { "`\"\"`".into() } else { format!("`{text}`") }
}

/// A bar would end the cell, and rustdoc would take a bracket for a link.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('[', "\\[")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
        if std::env::var_os("CASWELL_WRITE_DOCUMENTATION").is_some() {
            std::fs::write(path, super::page()).expect("the working copy is writable");
        }
        let page = std::fs::read_to_string(path).expect("the page");
        assert!(
            page == super::page(),
            "docs/configuration.md is not what the table says: see src/config/documentation.rs"
        );
    }
}
