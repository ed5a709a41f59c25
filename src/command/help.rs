//! The answer of HELP subcommands, made from the rows.

use super::spec::{Argument, ArgumentKind, Row};
use crate::resp::Reply;

/// Answers with the syntax and the summary of each subcommand of `container`.
pub fn reply(container: &Row, reply: &mut Reply) {
    let name = container.name.to_ascii_uppercase();
    reply.array(1 + 2 * container.subcommands.len());
    reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for row in container.subcommands {
        let arguments = syntax(row.arguments);
        reply.simple(format!("{} {arguments}", row.name.to_ascii_uppercase()).trim_end());
        reply.simple(&format!("    {}", row.summary));
    }
}

/// Arguments as users know them from manuals: `<key> [EX <seconds> | PX <milliseconds>]`.
pub fn syntax(arguments: &[Argument]) -> String {
    arguments.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn one(argument: &Argument) -> String {
    let name = if argument.display_text.is_empty() { argument.name } else { argument.display_text };
    let value = match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::Block => syntax(argument.arguments),
        ArgumentKind::OneOf => {
            let choices = argument.arguments.iter().map(one).collect::<Vec<_>>().join(" | ");
            if argument.optional && argument.token.is_empty() { choices } else { format!("<{choices}>") }
        }
        _ => format!("<{name}>"),
    };
    let mut text = match argument.token {
        "" => value.clone(),
        token => format!("{token} {value}").trim_end().to_owned(),
    };
    if argument.multiple {
        let again = if argument.multiple_token { text.clone() } else { value };
        text = format!("{text} [{again} ...]");
    }
    if argument.optional { format!("[{text}]") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::Protocol;

    #[test]
    fn syntax_is_written_as_in_manuals() {
        const ARGUMENTS: &[Argument] = &[
            Argument::key("key", 0).multiple(),
            Argument::one_of("condition", &[Argument::word("nx", "NX"), Argument::word("xx", "XX")]).optional(),
            Argument::one_of("end", &[Argument::word("left", "LEFT"), Argument::word("right", "RIGHT")]),
            Argument::string("prefix").token("PREFIX").optional().multiple_token(),
            Argument::string("addr").shown_as("ip:port"),
        ];
        assert_eq!(
            syntax(ARGUMENTS),
            "<key> [<key> ...] [NX | XX] <LEFT | RIGHT> [PREFIX <prefix> [PREFIX <prefix> ...]] <ip:port>"
        );
    }

    #[test]
    fn help_has_two_lines_per_subcommand() {
        const SUBCOMMANDS: &[Row] = &[Row { name: "help", summary: "Lists.", ..Row::DEFAULT }];
        let mut help = Reply::new(Protocol::Resp2);
        reply(&Row { name: "object", subcommands: SUBCOMMANDS, ..Row::DEFAULT }, &mut help);
        let header = "+OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
        assert_eq!(help.to_vec(), format!("*3\r\n{header}\r\n+HELP\r\n+    Lists.\r\n").into_bytes());
    }
}
