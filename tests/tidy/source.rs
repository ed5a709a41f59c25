//! Reading the tree: which files there are, and a file's code with comments and strings blanked out.

use std::path::Path;

/// The folders with Rust files of the project.
pub const ALL: &[&str] = &["src", "tests", "benches", "loom-tests", "fuzz", "model"];

/// A file, as written and with only its code left.
pub struct SourceFile {
    /// Path below the repository's root, with forward slashes.
    pub path: String,
    /// The text.
    pub text: String,
    /// The text with the contents of comments, strings and character literals replaced by spaces, line by line in place.
    pub code: String,
}

impl SourceFile {
    /// A file from a path and a text.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), code: blank_comments_and_strings(text) }
    }

    /// The code lines and the text lines side by side, with their numbers from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        self.code.lines().zip(self.text.lines()).enumerate().map(|(index, (code, text))| (index + 1, code, text))
    }
}

/// What the checks found, one line each.
#[derive(Default)]
pub struct Complaints(Vec<String>);

impl Complaints {
    /// Adds one about a line of a file.
    pub fn at(&mut self, file: &SourceFile, line: usize, what: &str) {
        self.0.push(format!("{}:{line}: {what}", file.path));
    }

    /// Adds one.
    pub fn add(&mut self, what: String) {
        self.0.push(what);
    }

    /// Fails the test with all of them, if there are any.
    pub fn assert_none(&self) {
        assert!(self.0.is_empty(), "{} complaints:\n{}", self.0.len(), self.0.join("\n"));
    }

    /// Fails the test unless there is exactly one and it contains `part`.
    pub fn assert_one(&self, part: &str) {
        assert!(self.0.len() == 1 && self.0[0].contains(part), "expected one complaint with {part:?}: {:#?}", self.0);
    }
}

/// Reads a file of the repository.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The Rust files below some folders of the repository.
pub fn rust_files(folders: &[&str]) -> Vec<SourceFile> {
    walk(folders, &["rs"])
}

/// Every text file that people write.
pub fn text_files() -> Vec<SourceFile> {
    let mut folders = ALL.to_vec();
    folders.extend(["docs", ".ci"]);
    let mut files = walk(&folders, &["rs", "md", "toml", "py", "sh", ""]);
    for page in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "Cargo.toml"] {
        if root().join(page).exists() {
            files.push(SourceFile::new(page, &read(page)));
        }
    }
    files
}

/// The names of the integration tests under `tests`.
pub fn test_targets() -> Vec<String> {
    let folder = std::fs::read_dir(root().join("tests")).expect("tests is a folder");
    let mut names: Vec<_> = folder
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists())
        .map(|path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn walk(folders: &[&str], extensions: &[&str]) -> Vec<SourceFile> {
    let mut waiting: Vec<_> = folders.iter().map(|folder| root().join(folder)).filter(|path| path.exists()).collect();
    let mut files = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("a folder can be read").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            if path.is_dir() {
                // Built or generated: fuzz keeps its target, corpora and findings beside its source.
                if !["target", "corpus", "corpus-work", "artifacts", "seeds"].contains(&name.as_str()) {
                    waiting.push(path);
                }
            } else if extensions.contains(&path.extension().map_or("", |end| end.to_str().unwrap_or("?"))) {
                let relative = path.strip_prefix(root()).expect("it lies below the root");
                let relative = relative.to_str().expect("names are UTF-8").replace('\\', "/");
                files.push(SourceFile::new(&relative, &read(&relative)));
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// Replaces what stands inside comments, strings and character literals by spaces and keeps every line break.
fn blank_comments_and_strings(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let starts_with = |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| characters.get(at + i) == Some(&c));
    while at < characters.len() {
        let end = if starts_with(at, "//") {
            (at..characters.len()).find(|&i| characters[i] == '\n').unwrap_or(characters.len())
        } else if starts_with(at, "/*") {
            (at + 2..characters.len()).find(|&i| starts_with(i, "*/")).map_or(characters.len(), |i| i + 2)
        } else if let Some(end) = raw_string_end(&characters, at) {
            end
        } else if characters[at] == '"' {
            quoted_end(&characters, at, '"')
        } else if characters[at] == '\''
            && (characters.get(at + 1) == Some(&'\\') || characters.get(at + 2) == Some(&'\''))
        {
            quoted_end(&characters, at, '\'')
        } else {
            out.push(characters[at]);
            at += 1;
            continue;
        };
        out.extend(characters[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out
}

/// The end of a quoted literal that begins at `at`.
fn quoted_end(characters: &[char], at: usize, quote: char) -> usize {
    let mut i = at + 1;
    while i < characters.len() && characters[i] != quote {
        i += if characters[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(characters.len())
}

/// The end of a raw string that begins at `at` (`r"`, `r#"`, `br#"` and so on), if one does.
fn raw_string_end(characters: &[char], at: usize) -> Option<usize> {
    if at > 0 && (characters[at - 1].is_alphanumeric() || characters[at - 1] == '_') {
        return None;
    }
    let after_b = if characters[at] == 'b' { at + 1 } else { at };
    if characters.get(after_b) != Some(&'r') {
        return None;
    }
    let hashes = characters[after_b + 1..].iter().take_while(|&&c| c == '#').count();
    let open = after_b + 1 + hashes;
    if characters.get(open) != Some(&'"') {
        return None;
    }
    let closed = |i: usize| characters[i] == '"' && (1..=hashes).all(|k| characters.get(i + k) == Some(&'#'));
    (open + 1..characters.len()).find(|&i| closed(i)).map(|i| i + 1 + hashes)
}

#[test]
fn only_code_is_left() {
    let file = SourceFile::new("x.rs", "a \"b//\\\"\" c // d\n'e' 'f 'g: r#\"h\"i\"# j /* k\n */ l");
    assert_eq!(file.code.split_whitespace().collect::<Vec<_>>(), ["a", "c", "'f", "'g:", "j", "l"]);
    assert_eq!(file.code.lines().count(), 3);
}
