//! Notes in the source: each file's story, the argument of every ordering and of every unsafe, nothing left over.

use crate::source::{Complaints, SourceFile};

/// How far above its place a note may stand, in lines, as long as no blank line parts them.
const NOTE_DISTANCE: usize = 14;

const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// A file begins with a `//!` line that says what it is for.
pub fn story(file: &SourceFile, complaints: &mut Complaints) {
    if !file.text.starts_with("//! ") {
        complaints.at(file, 1, "does not begin with a `//!` story");
    }
}

/// An atomic ordering is named in a comment on its line or on the lines above it.
pub fn orderings(file: &SourceFile, complaints: &mut Complaints) {
    let lines: Vec<_> = file.lines().collect();
    let mut inside_use = false;
    for (index, (number, code, _)) in lines.iter().enumerate() {
        let starts_use = code.trim_start().trim_start_matches("pub ").starts_with("use ");
        if starts_use || inside_use {
            inside_use = !code.contains(';');
            continue;
        }
        for ordering in ORDERINGS {
            if has_word(code, ordering) && !argued(&lines[..=index], ordering) {
                complaints.at(file, *number, &format!("no comment argues the ordering {ordering}"));
            }
        }
    }
}

/// Whether a note argues the ordering in the last line: by its name, by both halves for `AcqRel`, or once for all that follows in the function.
fn argued(lines: &[(usize, &str, &str)], ordering: &str) -> bool {
    let by_halves = ordering == "AcqRel" && noted(lines, "Acquire") && noted(lines, "Release");
    let once_for_all = || {
        lines.iter().rev().take_while(|(_, code, _)| !has_word(code, "fn")).any(|(_, _, text)| {
            comment_of(text).is_some_and(|note| has_word(note, ordering) && note.contains("here and below"))
        })
    };
    noted(lines, ordering) || by_halves || once_for_all()
}

/// An unsafe block or impl has a `SAFETY:` note, an unsafe function a `# Safety` section.
pub fn safety(file: &SourceFile, complaints: &mut Complaints) {
    let lines: Vec<_> = file.lines().collect();
    for (index, (number, code, _)) in lines.iter().enumerate() {
        for (at, _) in code.match_indices("unsafe") {
            let rest = code[at + "unsafe".len()..].trim_start();
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') || rest.starts_with(['_', '(']) {
                continue;
            }
            let declares = ["fn ", "extern \"", "trait "].iter().any(|kind| rest.starts_with(kind));
            if declares && !documented_safety(&lines[..index]) && !noted(&lines[..=index], "SAFETY:") {
                complaints.at(file, *number, "an unsafe item without a `# Safety` section");
            } else if (rest.starts_with('{') || rest.starts_with("impl") || rest.is_empty())
                && !noted(&lines[..=index], "SAFETY:")
            {
                complaints.at(file, *number, "unsafe without a `SAFETY:` note");
            }
        }
    }
}

/// No marks of unfinished work, in any file that people write.
pub fn leftovers(file: &SourceFile, complaints: &mut Complaints) {
    // Put together here, so that this file does not hold them.
    let marks = [
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("XX", "X:"),
        concat!("to", "do!"),
        concat!("unimple", "mented!"),
        concat!("#[ig", "nore"),
        concat!("db", "g!("),
    ];
    for (index, line) in file.text.lines().enumerate() {
        for mark in marks {
            let standing_alone = line.match_indices(mark).any(|(at, _)| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
                    && !line[at + mark.len()..]
                        .starts_with(|c: char| c.is_alphanumeric() && mark.ends_with(char::is_alphanumeric))
            });
            if standing_alone {
                complaints.at(file, index + 1, &format!("{mark} is left over"));
            }
        }
    }
}

/// `unwrap` says nothing of why it cannot fail: `expect` does. Tests stand last in a file, behind `#[cfg(test)]`.
pub fn unwraps(file: &SourceFile, complaints: &mut Complaints) {
    for (number, code, _) in file.lines().take_while(|(_, code, _)| !code.contains("#[cfg(test)]")) {
        if code.contains(".unwrap()") {
            complaints.at(file, number, "`unwrap` outside tests");
        }
    }
}

/// The file is declared as a module by the file above it.
pub fn reachable(file: &SourceFile, files: &[SourceFile], complaints: &mut Complaints) {
    let module = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
    if module == "src/lib" || module == "src/main" {
        return;
    }
    let (parent, name) = module.rsplit_once('/').expect("a file of src lies in a folder");
    let declared = files
        .iter()
        .filter(|other| {
            let other = other.path.trim_end_matches(".rs").trim_end_matches("/mod");
            other == parent || (parent == "src" && (other == "src/lib" || other == "src/main"))
        })
        .any(|other| has_word(&other.code, &format!("mod {name}")));
    if !declared {
        complaints.at(file, 1, "is no module of the file above it");
    }
}

/// Whether the last of `lines`, or one above it up to a blank line, has a comment with the word `what`.
fn noted(lines: &[(usize, &str, &str)], what: &str) -> bool {
    let same_line = lines.last().is_some_and(|(_, _, text)| comment_of(text).is_some_and(|note| has_word(note, what)));
    same_line
        || lines
            .iter()
            .rev()
            .skip(1)
            .take(NOTE_DISTANCE)
            .take_while(|(_, _, text)| !text.trim().is_empty())
            .any(|(_, _, text)| comment_of(text).is_some_and(|note| has_word(note, what)))
}

/// Whether the documentation right above has a `# Safety` section.
fn documented_safety(above: &[(usize, &str, &str)]) -> bool {
    above
        .iter()
        .rev()
        .map(|(_, _, text)| text.trim_start())
        .take_while(|text| text.starts_with("///") || text.starts_with("#[") || text.starts_with("//"))
        .any(|text| text.starts_with("/// # Safety"))
}

fn comment_of(text: &str) -> Option<&str> {
    text.find("//").map(|at| &text[at..])
}

/// Whether `word` stands in `text` not as a part of a longer identifier.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].ends_with(part_of_name) && !text[at + word.len()..].starts_with(part_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_of(check: impl Fn(&SourceFile, &mut Complaints), text: &str) -> Complaints {
        let mut complaints = Complaints::default();
        check(&SourceFile::new("src/planted.rs", text), &mut complaints);
        complaints
    }

    #[test]
    fn a_planted_file_without_story_is_caught() {
        complaints_of(story, "use std::fmt;\n").assert_one("story");
        complaints_of(story, "//! A story.\n").assert_none();
    }

    #[test]
    fn a_planted_silent_ordering_is_caught() {
        complaints_of(orderings, "a.load(Ordering::Acquire);").assert_one("Acquire");
        complaints_of(orderings, "// Acquire: pairs with b.\n\na.load(Acquire);").assert_one("Acquire");
        complaints_of(orderings, "// Release: pairs with b.\na.swap(1, AcqRel);").assert_one("AcqRel");
        complaints_of(orderings, "use x::{\n  Relaxed,\n};\n// Acquire: pairs with b.\na.load(\n Acquire);")
            .assert_none();
        complaints_of(orderings, "a.load(Relaxed) // Relaxed: a count.").assert_none();
        complaints_of(orderings, "// Acquire: as b.\n// Release: as c.\na.swap(1, AcqRel);").assert_none();
        complaints_of(orderings, "fn f() {\n// Relaxed, here and below: ours alone.\n\na.load(Relaxed);").assert_none();
        complaints_of(orderings, "// Relaxed, here and below: ours alone.\n\nfn f() {\na.load(Relaxed);")
            .assert_one("Relaxed");
    }

    #[test]
    fn a_planted_silent_unsafe_is_caught() {
        complaints_of(safety, "let a = unsafe { *b };").assert_one("SAFETY");
        complaints_of(safety, "unsafe impl Send for A {}").assert_one("SAFETY");
        complaints_of(safety, "/// Reads.\nunsafe fn read() {}").assert_one("# Safety");
        complaints_of(safety, "// SAFETY: `b` was checked above.\nlet a = unsafe { *b };").assert_none();
        complaints_of(safety, "/// Reads.\n///\n/// # Safety\n/// `b` lives.\npub unsafe fn read() {}").assert_none();
        complaints_of(safety, "#![deny(unsafe_op_in_unsafe_fn)] // unsafe\ntype F = unsafe fn(u8);").assert_none();
    }

    #[test]
    fn planted_leftovers_are_caught() {
        complaints_of(leftovers, concat!("// TO", "DO: later")).assert_one("left over");
        complaints_of(leftovers, concat!("fn f() { to", "do!() }")).assert_one("left over");
        complaints_of(leftovers, concat!("#[ig", "nore = \"slow\"]")).assert_one("left over");
        complaints_of(leftovers, concat!("const MASTO", "DON: u8 = 1;")).assert_none();
    }

    #[test]
    fn a_planted_unwrap_is_caught() {
        complaints_of(unwraps, "a.unwrap();\n#[cfg(test)]\nmod tests { fn f() { b.unwrap() } }").assert_one("unwrap");
    }

    #[test]
    fn a_planted_dead_file_is_caught() {
        let files = [
            SourceFile::new("src/lib.rs", "pub mod store;\n// mod attic;"),
            SourceFile::new("src/store/mod.rs", "mod table;"),
            SourceFile::new("src/store/table.rs", ""),
            SourceFile::new("src/attic.rs", ""),
        ];
        let mut complaints = Complaints::default();
        for file in &files {
            reachable(file, &files, &mut complaints);
        }
        complaints.assert_one("src/attic.rs");
    }
}
