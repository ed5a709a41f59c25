//! Do numbers in texts, floats and integers, keep their value when they are read and written?

use caswell::command::args::parse_integer;
use caswell::command::float_text;

/// The bytes are the text of a number, or of two with a comma between them.
pub fn run(bytes: &[u8]) {
    let mut texts = bytes.splitn(2, |byte| *byte == b',');
    let first = number(texts.next().unwrap_or(&[]));
    let second = number(texts.next().unwrap_or(&[]));
    if let (Some(first), Some(second)) = (first, second)
        && let Some(sum) = float_text::add(first, second)
    {
        assert_eq!(float_text::add(second, first), Some(sum), "addition commutes");
        round_trip(sum);
    }
}

fn number(text: &[u8]) -> Option<float_text::LongDouble> {
    let integer =
        std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok().filter(|it| it.to_string() == text));
    assert_eq!(parse_integer(text), integer, "{}", text.escape_ascii());
    let number = float_text::parse(text)?;
    if let Some(integer) = integer {
        assert_eq!(float_text::from_integer(integer), number);
        assert_eq!(float_text::format(number), text);
    }
    // Adding zero tells the finite numbers.
    let finite = float_text::add(number, float_text::from_integer(0))?;
    round_trip(finite);
    Some(number)
}

/// What is written reads back as a number that is written the same way.
fn round_trip(number: float_text::LongDouble) {
    let text = float_text::format(number);
    assert!(text.iter().all(|byte| byte.is_ascii_digit() || b"-.".contains(byte)), "{}", text.escape_ascii());
    assert!(!text.contains(&b'.') || !text.ends_with(b"0"), "trailing zeros: {}", text.escape_ascii());
    let again = float_text::parse(&text).expect("a written number can be read");
    assert_eq!(float_text::format(again), text, "{}", text.escape_ascii());
}
