//! The row: everything that is known of a setting, in one place.

use super::settings::Settings;
use super::value::{Kind, Value};

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At any time, by CONFIG SET.
    Always,
    /// By CONFIG SET only if `enable-protected-configs` allows it.
    Protected,
    /// Only by the file and the command line.
    Start,
}

/// What a setting does in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What the documentation line says.
    Done,
    /// Nothing; it is accepted so that files written for Redis or Valkey load. The text says why nothing is lost.
    None(&'static str),
    /// Only these values are accepted (as CONFIG GET prints them); another would promise what this version does not do. The text says so.
    Only(&'static [&'static str], &'static str),
}

/// One setting.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Its name in the file, on the command line and for CONFIG.
    pub name: &'static str,
    /// Another name for it; empty for none.
    pub alias: &'static str,
    /// How its value is read and written.
    pub kind: Kind,
    /// The value it has if nobody sets it, as in the file. The words `(cores)` and `(current)` are found out at the start.
    pub default: &'static str,
    /// When it may change.
    pub change: Change,
    /// What it does in this version.
    pub effect: Effect,
    /// One line of documentation.
    pub doc: &'static str,
    /// Copies the value to where it is read often.
    pub publish: fn(&Settings, &Value),
}

impl Setting {
    /// A setting that may change at any time and that is read from the table.
    pub const fn new(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self { name, alias: "", kind, default, change: Change::Always, effect: Effect::Done, doc, publish: |_, _| {} }
    }

    /// Yes or no.
    pub const fn yes_no(name: &'static str, default: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::YesNo, default, doc)
    }

    /// An integer from `minimum` to `maximum`.
    pub const fn integer(
        name: &'static str,
        minimum: i64,
        maximum: i64,
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        Self::new(name, Kind::Integer(minimum, maximum), default, doc)
    }

    /// Bytes, at least `minimum`.
    pub const fn memory(name: &'static str, minimum: i64, default: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Memory(minimum, i64::MAX), default, doc)
    }

    /// One of `names`.
    pub const fn choice(
        name: &'static str,
        names: &'static [&'static str],
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        Self::new(name, Kind::Choice(names), default, doc)
    }

    /// Any text.
    pub const fn text(name: &'static str, default: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Text(|_| Ok(())), default, doc)
    }

    /// The same setting under a second name.
    pub const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = alias;
        self
    }

    /// Changes only by the file and the command line.
    pub const fn at_start(mut self) -> Self {
        self.change = Change::Start;
        self
    }

    /// Changes by CONFIG SET only if `enable-protected-configs` allows it.
    pub const fn protected(mut self) -> Self {
        self.change = Change::Protected;
        self
    }

    /// Accepted without effect.
    pub const fn no_effect(mut self, reason: &'static str) -> Self {
        self.effect = Effect::None(reason);
        self
    }

    /// Other values than these are refused.
    pub const fn only(mut self, values: &'static [&'static str], reason: &'static str) -> Self {
        self.effect = Effect::Only(values, reason);
        self
    }

    /// Where the value is copied to when it changes.
    pub const fn publish(mut self, publish: fn(&Settings, &Value)) -> Self {
        self.publish = publish;
        self
    }

    /// Whether this is one of its names, in any case.
    pub fn is_called(&self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name.as_bytes())
            || !self.alias.is_empty() && name.eq_ignore_ascii_case(self.alias.as_bytes())
    }
}

/// Settings of one topic, under its heading.
pub struct Topic {
    /// The heading.
    pub title: &'static str,
    /// The settings.
    pub settings: &'static [Setting],
}
