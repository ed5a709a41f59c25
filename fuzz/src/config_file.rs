//! Does the configuration file's parser take any bytes, and read back what it understood when it is written out in full?

use caswell::config::file::{self, Directive};

/// The bytes are the file.
pub fn run(bytes: &[u8]) {
    let Ok(directives) = file::parse(bytes) else { return };
    let mut last_line = 0;
    let mut rewritten = Vec::new();
    for directive in &directives {
        assert!(directive.line > last_line, "lines are in order");
        last_line = directive.line;
        assert_eq!(directive.name, directive.name.to_ascii_lowercase());
        assert!(!directive.text.contains(&b'\n'));
        for word in std::iter::once(&directive.name).chain(&directive.words) {
            rewritten.extend(quoted(word).into_bytes());
        }
        rewritten.push(b'\n');
    }
    let again = file::parse(&rewritten).expect("every word is in quotes");
    let contents = |directives: &[Directive]| -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        directives.iter().map(|one| (one.name.clone(), one.words.clone())).collect()
    };
    assert_eq!(contents(&directives), contents(&again));
}

fn quoted(word: &[u8]) -> String {
    let escapes: String = word.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{escapes}\" ")
}
