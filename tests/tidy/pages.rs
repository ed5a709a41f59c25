//! Pages that other things rely on: the changelog's form, and the table of stages that `.ci/check` reads.

use crate::source::Complaints;

/// The seconds that all waves may take together, by their budgets.
const WHOLE_RUN_SECONDS: u32 = 35 * 60;

/// Keep a Changelog's form: the unreleased section first, versions with dates, the six kinds of change.
pub fn changelog(text: &str, complaints: &mut Complaints) {
    const KINDS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
    if !text.starts_with("# Changelog\n") {
        complaints.add("CHANGELOG.md does not begin with `# Changelog`".into());
    }
    let versions: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    if versions.first() != Some(&"[Unreleased]") {
        complaints.add("CHANGELOG.md has no `[Unreleased]` section first".into());
    }
    for version in versions.iter().skip(1) {
        if !is_released(version) {
            complaints.add(format!("CHANGELOG.md: `{version}` is not of the form `[1.2.3] - 2026-01-31`"));
        }
    }
    for kind in text.lines().filter_map(|line| line.strip_prefix("### ")) {
        if !KINDS.contains(&kind) {
            complaints.add(format!("CHANGELOG.md: `{kind}` is no kind of change"));
        }
    }
    if !text.lines().any(|line| line.starts_with("- ")) {
        complaints.add("CHANGELOG.md lists no change".into());
    }
}

/// Whether a heading reads `[1.2.3] - 2026-01-31`.
fn is_released(heading: &str) -> bool {
    let Some((version, date)) = heading.strip_prefix('[').and_then(|rest| rest.split_once("] - ")) else {
        return false;
    };
    let numbers = |text: &str, separator, widths: [Option<usize>; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        parts.len() == 3
            && parts.iter().zip(widths).all(|(part, width)| {
                part.bytes().all(|byte| byte.is_ascii_digit())
                    && width.map_or(!part.is_empty(), |width| part.len() == width)
            })
    };
    numbers(version, '.', [None; 3]) && numbers(date, '-', [Some(4), Some(2), Some(2)])
}

/// Every stage of the table is a function of the runner, every integration test belongs to a stage, and the time suffices.
pub fn stages(page: &str, runner: &str, test_targets: &[String], complaints: &mut Complaints) {
    let rows: Vec<(&str, u32, u32)> = page.lines().filter_map(row).collect();
    if rows.is_empty() {
        complaints.add("docs/testing.md has no table of stages".into());
    }
    for (stage, _, _) in &rows {
        if !runner.contains(&format!("\n{stage}() {{")) {
            complaints.add(format!(".ci/check has no function for the stage `{stage}`"));
        }
    }
    let mut whole = 0;
    let mut waves: Vec<u32> = rows.iter().map(|(_, wave, _)| *wave).collect();
    if !waves.is_sorted() {
        complaints.add("docs/testing.md: the waves are not in order".into());
    }
    waves.dedup();
    for wave in waves {
        whole += rows.iter().filter(|row| row.1 == wave).map(|row| row.2).max().unwrap_or(0);
    }
    if whole > WHOLE_RUN_SECONDS {
        complaints.add(format!("docs/testing.md: the budgets add up to {whole} s, more than {WHOLE_RUN_SECONDS}"));
    }
    for target in test_targets {
        if !runner.contains(&format!("--test {target}")) {
            complaints.add(format!("tests/{target} is run by no stage of .ci/check"));
        }
    }
}

/// A row of the table: stage, wave, budget in seconds.
fn row(line: &str) -> Option<(&str, u32, u32)> {
    let mut cells = line.strip_prefix("| `")?.split(" | ");
    let stage = cells.next()?.strip_suffix('`')?;
    Some((stage, cells.next()?.parse().ok()?, cells.next()?.parse().ok()?))
}

#[test]
fn planted_changelog_faults_are_caught() {
    let sound = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-31\n";
    let complaints_of = |text: &str| {
        let mut complaints = Complaints::default();
        changelog(text, &mut complaints);
        complaints
    };
    complaints_of(sound).assert_none();
    complaints_of(&sound.replace("# Changelog\n", "# History\n")).assert_one("begin");
    complaints_of(&sound.replace("## [Unreleased]\n", "## Soon\n\n## [0.2.0] - 2026-02-01\n")).assert_one("first");
    complaints_of(&sound.replace(" - 2026-01-31", " of January")).assert_one("0.1.0");
    complaints_of(&sound.replace("Added", "New")).assert_one("kind");
    complaints_of(&sound.replace("- A thing.", "")).assert_one("no change");
}

#[test]
fn planted_stage_faults_are_caught() {
    let page = "| `one` | 1 | 100 | x |\n| `two` | 2 | 700 | x |\n| `three` | 2 | 600 | x |\n";
    let runner = "\none() { cargo test --test alpha; }\ntwo() {\nthree() {\n";
    let complaints_of = |page: &str, runner: &str| {
        let mut complaints = Complaints::default();
        stages(page, runner, &["alpha".into()], &mut complaints);
        complaints
    };
    complaints_of(page, runner).assert_none();
    complaints_of(page, &runner.replace("two()", "too()")).assert_one("`two`");
    complaints_of(page, &runner.replace("alpha", "beta")).assert_one("tests/alpha");
    complaints_of(&page.replace("100", "2000"), runner).assert_one("2700");
    complaints_of(&page.replace("| 1 |", "| 3 |"), runner).assert_one("order");
    complaints_of("", runner).assert_one("no table");
}
