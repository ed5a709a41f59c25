//! The table of all settings, one file per topic. CONFIG, the file, the command line, `--help` and `docs/configuration.md`
//! are made from it.

mod cluster;
mod memory;
mod network;
mod observation;
mod persistence;
mod process;
mod replication;
mod tls;
mod values;

use super::setting::{Setting, Topic};

/// Topics in the order of the documentation.
pub static TOPICS: &[Topic] = &[
    network::TOPIC,
    process::TOPIC,
    memory::TOPIC,
    values::TOPIC,
    observation::TOPIC,
    persistence::TOPIC,
    replication::TOPIC,
    cluster::TOPIC,
    tls::TOPIC,
];

/// Directives that only a file or the command line may hold, and that are no settings: name, whether it works, documentation.
pub static DIRECTIVES: &[(&str, bool, &str)] = &[
    (
        "include",
        true,
        "Reads another file here; `*`, `?` and `[...]` in its last part match several, in the order of their names.",
    ),
    ("rename-command", true, "Gives a command another name, or takes it away if the new name is \"\"."),
    ("user", false, "Access control lists are not part of this version: use requirepass."),
    ("loadmodule", false, "Modules cannot be loaded."),
    ("loadmodule-ex", false, "Modules cannot be loaded."),
    ("sentinel", false, "Caswell is no sentinel."),
];

/// All settings, topic by topic. A setting's index is its place here.
pub fn rows() -> impl Iterator<Item = &'static Setting> {
    TOPICS.iter().flat_map(|topic| topic.settings)
}

/// The setting at `index`. O(topics).
///
/// # Panics
/// If the index is out of range.
pub fn row(mut index: usize) -> &'static Setting {
    for topic in TOPICS {
        match topic.settings.get(index) {
            Some(setting) => return setting,
            None => index -= topic.settings.len(),
        }
    }
    panic!("no setting has this index");
}

/// The index of the setting of this name or alias, in any case. O(settings).
pub fn find(name: &[u8]) -> Option<usize> {
    rows().position(|setting| setting.is_called(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_rows_are_found_by_them() {
        let mut names = std::collections::HashSet::new();
        for (index, setting) in rows().enumerate() {
            assert!(names.insert(setting.name), "{} stands twice", setting.name);
            assert!(setting.alias.is_empty() || names.insert(setting.alias), "{} stands twice", setting.alias);
            assert_eq!(find(setting.name.to_ascii_uppercase().as_bytes()), Some(index));
            assert_eq!(row(index).name, setting.name);
        }
    }

    #[test]
    fn every_line_of_documentation_is_a_sentence() {
        for setting in rows() {
            assert!(setting.doc.ends_with('.'), "{}", setting.name);
            if let super::super::setting::Effect::None(reason) | super::super::setting::Effect::Only(_, reason) =
                setting.effect
            {
                assert!(reason.ends_with('.'), "{}", setting.name);
            }
        }
    }
}
