//! LOLWUT: a piece of computer art, and the version.

use crate::command::Context;
use crate::command::args::{Args, parse_integer};
use crate::command::error::{CommandError, CommandResult};
use crate::command::spec::{Argument, Flags, Handler, Row};
use crate::resp::Reply;

/// The commands of this family.
pub static ROWS: &[Row] = &[Row {
    name: "lolwut",
    summary: "Draws a piece of computer art and tells the version.",
    handler: Handler::Server(lolwut),
    arity: -1,
    flags: Flags::READONLY.or(Flags::FAST),
    since: "5.0.0",
    complexity: "",
    arguments: &[Argument::integer("version").token("VERSION").optional()],
    ..Row::DEFAULT
}];

/// Columns and rows of a picture, whatever is asked for.
const COLUMNS_MAX: i64 = 200;
const ROWS_MAX: i64 = 100;

fn lolwut(_: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let mut rest = args.from(1);
    let mut version = None;
    if args.len() >= 3 && args.is(1, "version") {
        version = Some(args.integer(2)?);
        rest = args.from(3);
    }
    let number = |index: usize, default: i64, maximum: i64| match rest.get(index) {
        Some(word) => parse_integer(word).map(|number| number.clamp(1, maximum)).ok_or(CommandError::NOT_AN_INTEGER),
        None => Ok(default),
    };
    let mut picture = match version {
        Some(5) => automaton(number(0, 66, COLUMNS_MAX)?, number(1, 24, ROWS_MAX)?, number(2, 30, 255)? as u8),
        None | Some(6) if version.is_some() || rest.is_empty() => {
            braid(number(0, 60, COLUMNS_MAX)? as usize, number(1, 6, 20)? as usize)
        }
        _ => String::new(),
    };
    let (redis, caswell) = (crate::REDIS_VERSION, env!("CARGO_PKG_VERSION"));
    picture.push_str(&format!("Redis ver. {redis} (Caswell {caswell})\n"));
    reply.verbatim("txt", picture.as_bytes());
    Ok(())
}

/// An elementary cellular automaton grown from one cell, two generations to a line of half blocks.
fn automaton(columns: i64, rows: i64, rule: u8) -> String {
    let width = columns as usize;
    let mut cells = vec![false; width];
    cells[width / 2] = true;
    let next = |cells: &[bool]| -> Vec<bool> {
        let cell = |index: usize| u8::from(cells[index % width]);
        (0..width)
            .map(|index| {
                let neighbours = cell(index + width - 1) << 2 | cell(index) << 1 | cell(index + 1);
                rule >> neighbours & 1 == 1
            })
            .collect()
    };
    let mut picture = String::new();
    for _ in 0..rows {
        let below = next(&cells);
        picture.extend(cells.iter().zip(&below).map(|pair| match pair {
            (true, true) => '█',
            (true, false) => '▀',
            (false, true) => '▄',
            (false, false) => ' ',
        }));
        picture.push('\n');
        cells = next(&below);
    }
    picture
}

/// Threads that run side by side and change places, none of them ever waiting for another.
fn braid(columns: usize, threads: usize) -> String {
    let mut lines = vec![String::new(); 2 * threads - 1];
    // Crossings follow one another in a fixed irregular order, so that the picture is the same every time.
    let mut state = 0x2545_f491_u32;
    let mut column = 0;
    while column < columns {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let crossing = if threads > 1 { state as usize % (threads - 1) } else { 0 };
        let width = 3.min(columns - column);
        for thread in 0..threads {
            let crosses = threads > 1 && (thread == crossing || thread == crossing + 1);
            let piece = match (crosses, thread == crossing) {
                (false, _) => "━━━",
                (true, true) => "╮ ╭",
                (true, false) => "╯ ╰",
            };
            lines[2 * thread].extend(piece.chars().take(width));
            if thread + 1 < threads {
                let between = if thread == crossing { " ╳ " } else { "   " };
                lines[2 * thread + 1].extend(between.chars().take(width));
            }
        }
        column += width;
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_have_the_size_asked_for() {
        for (columns, rows) in [(1, 1), (5, 2), (200, 100)] {
            let picture = automaton(columns, rows, 30);
            assert_eq!(picture.lines().count() as i64, rows);
            assert!(picture.lines().all(|line| line.chars().count() as i64 == columns));
        }
        for (columns, threads) in [(1, 1), (10, 2), (60, 6)] {
            let picture = braid(columns, threads);
            assert_eq!(picture.lines().count(), 2 * threads - 1);
            assert!(picture.lines().step_by(2).all(|line| line.chars().count() == columns));
        }
    }
}
