//! Makes `docs/commands.md` from the rows. A test proves that the page is fresh; run it with `CASWELL_WRITE_DOCUMENTATION=1` to write it
//! anew. The page itself:
//!
#![doc = include_str!("../../docs/commands.md")]

use super::family::FAMILIES;
use super::spec::{Argument, ArgumentKind, Row};

const INTRODUCTION: &str = "\
# Commands

Every command of this version, as `COMMAND DOCS` tells it. Arguments, replies and error texts are those of Redis 7.2. This page is made from
the rows in `src/command/family`; do not edit it. CLUSTER's subcommands answer that cluster support is disabled, but for HELP.

| Command | What it does | Complexity | Since Redis |
| --- | --- | --- | --- |
";

/// The page `docs/commands.md`: a line for every command and subcommand, by name.
pub fn page() -> String {
    let mut lines: Vec<String> = Vec::new();
    for row in FAMILIES.iter().flat_map(|family| family.iter()) {
        // A container that does nothing of its own is shown by its subcommands.
        if row.subcommands.is_empty() || !row.arguments.is_empty() {
            lines.push(line(None, row));
        }
        lines.extend(row.subcommands.iter().map(|subcommand| line(Some(row), subcommand)));
    }
    lines.sort();
    INTRODUCTION.to_owned() + &lines.concat()
}

fn line(container: Option<&Row>, row: &Row) -> String {
    let names = container.map(|container| container.name).into_iter().chain([row.name]);
    let words = names.map(str::to_uppercase).chain(row.arguments.iter().map(syntax));
    let usage = words.collect::<Vec<_>>().join(" ");
    format!("| `{}` | {} | {} | {} |\n", cell(&usage), cell(row.summary), cell(row.complexity), row.since)
}

/// An argument as manuals write it: `[EX seconds | PX milliseconds]`.
fn syntax(argument: &Argument) -> String {
    let all = |separator: &str| argument.arguments.iter().map(syntax).collect::<Vec<_>>().join(separator);
    let name = if argument.display_text.is_empty() { argument.name } else { argument.display_text };
    let value = match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::OneOf if argument.optional => all(" | "),
        ArgumentKind::OneOf => format!("<{}>", all(" | ")),
        ArgumentKind::Block => all(" "),
        _ => name.to_owned(),
    };
    let mut text = [argument.token, &value].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if argument.multiple {
        let again = if argument.multiple_token { &text } else { &value };
        text = format!("{text} [{again} ...]");
    }
    if argument.optional { format!("[{text}]") } else { text }
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md");
        if std::env::var_os("CASWELL_WRITE_DOCUMENTATION").is_some() {
            std::fs::write(path, super::page()).expect("the working copy is writable");
        }
        let page = std::fs::read_to_string(path).expect("the page");
        assert!(page == super::page(), "docs/commands.md is not what the rows say: see src/command/documentation.rs");
    }
}
