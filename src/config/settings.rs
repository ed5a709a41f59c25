//! The settings' values: copies for hot paths, which cost one relaxed load, and the whole table behind a lock that only
//! CONFIG and the start take.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::NoUninit;

use super::setting::{Change, Effect, Setting};
use super::table;
use super::value::{Refusal, Value};
use crate::sync::{Atomic, Ordering};

/// A value that is read on hot paths and changes by CONFIG SET.
#[derive(Default)]
pub struct Live<T: NoUninit>(Atomic<T>);

impl<T: NoUninit> Live<T> {
    /// The value.
    #[inline(always)]
    pub fn get(&self) -> T {
        // Relaxed: a setting stands for itself and publishes no other data; a worker may see it one command late.
        self.0.load(Ordering::Relaxed)
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        // Relaxed: see `get`.
        self.0.store(value, Ordering::Relaxed);
    }
}

macro_rules! choices {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$choice_doc:meta])* $choice:ident = $text:literal, )* } )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, NoUninit)]
        #[repr(u8)]
        pub enum $name { $( $(#[$choice_doc])* $choice, )* }

        impl $name {
            /// The names of the choices, in the order of the variants.
            pub const NAMES: &'static [&'static str] = &[ $( $text, )* ];
            const ALL: &'static [Self] = &[ $( Self::$choice, )* ];

            /// The choice that a checked value of this kind stands for.
            pub fn of(value: &Value) -> Self {
                Self::ALL[value.number() as usize]
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    )* };
}

choices! {
    /// Who may use a command or change a setting that is dangerous to leave open.
    Allow {
        /// Nobody.
        #[default]
        No = "no",
        /// Everybody.
        Yes = "yes",
        /// Clients of this machine.
        Local = "local",
    }

    /// What is evicted when memory is full.
    EvictionPolicy {
        /// Keys with an expiry, least recently used first.
        VolatileLru = "volatile-lru",
        /// Keys with an expiry, least frequently used first.
        VolatileLfu = "volatile-lfu",
        /// Keys with an expiry, at random.
        VolatileRandom = "volatile-random",
        /// Keys with an expiry, nearest expiry first.
        VolatileTtl = "volatile-ttl",
        /// Any key, least recently used first.
        AllKeysLru = "allkeys-lru",
        /// Any key, least frequently used first.
        AllKeysLfu = "allkeys-lfu",
        /// Any key, at random.
        AllKeysRandom = "allkeys-random",
        /// Nothing: commands that need memory are refused.
        #[default]
        NoEviction = "noeviction",
    }

    /// How much is logged.
    LogLevel {
        /// Everything.
        Debug = "debug",
        /// What developers like to know.
        Verbose = "verbose",
        /// What operators like to know.
        #[default]
        Notice = "notice",
        /// What needs attention.
        Warning = "warning",
        /// Nothing.
        Nothing = "nothing",
    }
}

impl EvictionPolicy {
    /// Whether it picks the least frequently used, so that access words hold a counter.
    pub fn is_lfu(self) -> bool {
        matches!(self, Self::VolatileLfu | Self::AllKeysLfu)
    }

    /// Whether it picks the least recently used.
    pub fn is_lru(self) -> bool {
        matches!(self, Self::VolatileLru | Self::AllKeysLru)
    }
}

/// When a client whose output it does not read is disconnected: at once above `hard` bytes, or above `soft` bytes for
/// `soft_seconds`; zero means no limit.
#[derive(Default)]
pub struct OutputLimit {
    /// Bytes.
    pub hard: Live<u64>,
    /// Bytes.
    pub soft: Live<u64>,
    /// Seconds.
    pub soft_seconds: Live<u64>,
}

/// Classes of clients with an output limit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientClass {
    /// Neither of the others.
    Normal,
    /// A replica.
    Replica,
    /// A subscriber.
    PubSub,
}

type Hook = Box<dyn Fn(&Settings) -> Result<(), String> + Send + Sync>;

/// The settings of one server. A field holds the copy of the setting with its name (with underscores).
#[derive(Default)]
#[allow(missing_docs, reason = "the table documents each setting under the same name")]
pub struct Settings {
    // Network.
    pub port: Live<u16>,
    pub tcp_backlog: Live<u32>,
    pub tcp_keepalive_seconds: Live<u32>,
    pub timeout_seconds: Live<u32>,
    pub maxclients: Live<u32>,
    pub protected_mode: Live<bool>,
    pub unixsocketperm: Live<u32>,
    pub proto_max_bulk_len: Live<u64>,
    pub client_query_buffer_limit: Live<u64>,
    output_limits: [OutputLimit; 3],
    /// Whether `requirepass` is set, so that new clients must authenticate.
    pub password_required: Live<bool>,
    // Process.
    pub threads: Live<u16>,
    pub databases: Live<u32>,
    pub hz: Live<u32>,
    pub daemonize: Live<bool>,
    pub loglevel: Live<LogLevel>,
    pub enable_debug_command: Live<Allow>,
    pub enable_protected_configs: Live<Allow>,
    pub shutdown_on_sigint: Live<u32>,
    pub shutdown_on_sigterm: Live<u32>,
    // Memory and expiry.
    pub maxmemory: Live<u64>,
    pub maxmemory_policy: Live<EvictionPolicy>,
    pub lfu_log_factor: Live<u32>,
    pub lfu_decay_time: Live<u32>,
    // Values.
    pub list_max_listpack_size: Live<i32>,
    pub busy_reply_threshold_ms: Live<i64>,
    pub tracking_table_max_keys: Live<u64>,
    // Observation.
    pub latency_tracking: Live<bool>,
    pub slowlog_log_slower_than_us: Live<i64>,
    pub slowlog_max_len: Live<u64>,
    pub notify_keyspace_events: Live<u32>,
    table: Mutex<Table>,
    hooks: Mutex<Vec<(&'static [&'static str], Hook)>>,
}

/// The whole table's values.
#[derive(Default, Clone)]
struct Table {
    /// In the table's order.
    values: Vec<Value>,
    /// What they would be had nobody set them.
    initial: Vec<Value>,
    file: Option<std::path::PathBuf>,
}

/// Why CONFIG SET changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// There is no setting of this name.
    Unknown(Vec<u8>),
    /// The setting of this name (as the user wrote it) cannot take the value, or cannot change now.
    Refused(Vec<u8>, Refusal),
}

impl std::fmt::Display for SetError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(name) => {
                let name = String::from_utf8_lossy(name);
                write!(formatter, "Unknown option or number of arguments for CONFIG SET - '{name}'")
            }
            Self::Refused(name, refusal) => {
                let name = String::from_utf8_lossy(name);
                write!(formatter, "CONFIG SET failed (possibly related to argument '{name}') - {refusal}")
            }
        }
    }
}

impl std::error::Error for SetError {}

impl Settings {
    /// All settings at their defaults.
    pub fn new() -> Self {
        let settings = Self::default();
        let values: Vec<Value> = table::rows().map(default_value).collect();
        for (setting, value) in table::rows().zip(&values) {
            (setting.publish)(&settings, value);
        }
        *settings.table() = Table { initial: values.clone(), values, ..Table::default() };
        settings
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing that holds the lock can panic half way through a change: values are replaced one by one, each whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The output limit of a class of clients.
    pub fn output_limit(&self, class: ClientClass) -> &OutputLimit {
        &self.output_limits[class as usize]
    }

    pub(super) fn output_limits(&self) -> &[OutputLimit; 3] {
        &self.output_limits
    }

    /// A setting's value by name.
    ///
    /// # Panics
    /// If there is no such setting: names in the program are literals.
    pub fn value(&self, name: &str) -> Value {
        let index = table::find(name.as_bytes()).expect("a setting of the table");
        self.table().values[index].clone()
    }

    /// A text setting's value as a string (bytes that are no UTF-8 replaced).
    pub fn string(&self, name: &str) -> String {
        String::from_utf8_lossy(self.value(name).text()).into_owned()
    }

    /// Several words as strings (bytes that are no UTF-8 replaced).
    pub fn strings(&self, name: &str) -> Vec<String> {
        self.value(name).words().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// The password of the default user, if there is one.
    pub fn password(&self) -> Option<Vec<u8>> {
        let value = self.value("requirepass");
        (!value.text().is_empty()).then(|| value.text().to_vec())
    }

    /// The absolute path of the configuration file, if the server was started with one.
    pub fn file(&self) -> Option<std::path::PathBuf> {
        self.table().file.clone()
    }

    pub(super) fn set_file(&self, file: std::path::PathBuf) {
        self.table().file = Some(file);
    }

    /// What CONFIG GET prints for one setting, by its index in the table.
    pub fn print(&self, index: usize) -> Vec<u8> {
        table::row(index).kind.print(&self.table().values[index])
    }

    /// What CONFIG GET prints for the setting of this name.
    ///
    /// # Panics
    /// If there is no such setting: names in the program are literals.
    pub fn print_named(&self, name: &str) -> Vec<u8> {
        self.print(table::find(name.as_bytes()).expect("a setting of the table"))
    }

    /// Value and initial value of every setting, in the table's order.
    pub(super) fn values(&self) -> Vec<(Value, Value)> {
        let table = self.table();
        table.values.iter().cloned().zip(table.initial.iter().cloned()).collect()
    }

    /// Sets a number that the system forces on us; nothing is asked and no hook runs.
    ///
    /// # Panics
    /// If there is no such setting: names in the program are literals.
    pub fn overrule(&self, name: &str, number: i64) {
        let index = table::find(name.as_bytes()).expect("a setting of the table");
        let value = Value::Number(number);
        (table::row(index).publish)(self, &value);
        self.table().values[index] = value;
    }

    /// Calls `hook` whenever CONFIG SET has changed one of the settings named, after the change is visible. If it fails,
    /// the whole CONFIG SET is taken back and answers with the hook's text.
    pub fn on_change(
        &self,
        names: &'static [&'static str],
        hook: impl Fn(&Settings) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).push((names, Box::new(hook)));
    }

    /// Sets a value while the server starts: nothing is immutable, no hook runs. `from` is the value that the words
    /// add to, for settings of which a line sets a part.
    pub(super) fn set_at_start(&self, index: usize, from: Option<Value>, words: &[&[u8]]) -> Result<(), Refusal> {
        let setting = table::row(index);
        let before = from.unwrap_or_else(|| self.table().values[index].clone());
        let value = setting.kind.read(&before, words)?;
        check_effect(setting, &value)?;
        let value = apply(setting, value)?;
        (setting.publish)(self, &value);
        self.table().values[index] = value;
        Ok(())
    }

    /// Sets several settings, all or none. `protected_too` is whether this client may change protected ones.
    ///
    /// # Errors
    /// As Redis words them; nothing has changed then.
    pub fn set(&self, pairs: &[(&[u8], &[u8])], protected_too: bool) -> Result<(), SetError> {
        // One CONFIG SET at a time: the hooks' lock is held from the check to the end.
        let hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.check(pairs, protected_too)?;
        for (step, change) in changes.iter().enumerate() {
            let setting = table::row(change.index);
            match apply(setting, change.value.clone()) {
                Ok(value) => {
                    (setting.publish)(self, &value);
                    self.table().values[change.index] = value;
                }
                Err(refusal) => {
                    self.restore(&changes[..step]);
                    return Err(SetError::Refused(change.name.to_vec(), refusal));
                }
            }
        }
        for (names, hook) in hooks.iter() {
            let concerned = changes.iter().find(|change| names.contains(&table::row(change.index).name));
            if let Some(change) = concerned
                && let Err(reason) = hook(self)
            {
                self.restore(&changes);
                // The hooks that ran saw values that no longer stand; they see the old ones again. What worked before
                // is expected to work again, and if it does not, the error below is the one to tell.
                for (names, hook) in hooks.iter() {
                    if changes.iter().any(|change| names.contains(&table::row(change.index).name)) {
                        let _ = hook(self);
                    }
                }
                return Err(SetError::Refused(change.name.to_vec(), reason.into()));
            }
        }
        Ok(())
    }

    /// Reads all values before any is changed.
    fn check<'a>(&self, pairs: &[(&'a [u8], &[u8])], protected_too: bool) -> Result<Vec<ChangeOf<'a>>, SetError> {
        let mut found = Vec::with_capacity(pairs.len());
        for (name, _) in pairs {
            found.push(table::find(name).ok_or_else(|| SetError::Unknown(name.to_vec()))?);
        }
        let refused = |name: &[u8], refusal: &'static str| SetError::Refused(name.to_vec(), refusal.into());
        for (at, (&index, &(name, _))) in found.iter().zip(pairs).enumerate() {
            match table::row(index).change {
                Change::Start => return Err(refused(name, "can't set immutable config")),
                Change::Protected if !protected_too => return Err(refused(name, "can't set protected config")),
                Change::Always | Change::Protected => {}
            }
            if found[..at].contains(&index) {
                return Err(refused(name, "duplicate parameter"));
            }
        }
        let mut changes = Vec::with_capacity(pairs.len());
        for (&index, &(name, text)) in found.iter().zip(pairs) {
            let setting = table::row(index);
            let before = self.table().values[index].clone();
            let words: Vec<&[u8]> = match text {
                b"" if setting.kind.takes_words() => Vec::new(),
                _ if setting.kind.takes_words() => text.split(|byte| *byte == b' ').collect(),
                _ => vec![text],
            };
            let value = setting
                .kind
                .read(&before, &words)
                .and_then(|value| check_effect(setting, &value).map(|()| value))
                .map_err(|refusal| SetError::Refused(name.to_vec(), refusal))?;
            changes.push(ChangeOf { index, name, before, value });
        }
        Ok(changes)
    }

    fn restore(&self, changes: &[ChangeOf<'_>]) {
        for change in changes {
            let setting = table::row(change.index);
            // What stood before was applied once; if it cannot be applied again (a directory that is gone), the
            // published value is restored all the same.
            let _ = apply(setting, change.before.clone());
            (setting.publish)(self, &change.before);
            self.table().values[change.index] = change.before.clone();
        }
    }
}

struct ChangeOf<'a> {
    index: usize,
    name: &'a [u8],
    before: Value,
    value: Value,
}

fn check_effect(setting: &Setting, value: &Value) -> Result<(), Refusal> {
    match setting.effect {
        Effect::Only(values, reason) => {
            let text = setting.kind.print(value);
            if values.iter().any(|allowed| allowed.as_bytes() == text) { Ok(()) } else { Err(reason.into()) }
        }
        Effect::Done | Effect::None(_) => Ok(()),
    }
}

/// Puts a value into effect where that is more than to store it; the value as it is then.
fn apply(setting: &Setting, value: Value) -> Result<Value, Refusal> {
    match setting.name {
        "dir" => {
            use std::os::unix::ffi::OsStrExt;
            let path = std::path::Path::new(std::ffi::OsStr::from_bytes(value.text()));
            std::env::set_current_dir(path).map_err(|error| Refusal::from(system_text(&error)))?;
            Ok(current_directory())
        }
        // Redis accepts any number for these two, and takes the nearest one that is sensible.
        "hz" => Ok(Value::Number(value.number().clamp(1, 500))),
        "repl-backlog-size" => Ok(Value::Number(value.number().max(16 * 1024))),
        _ => Ok(value),
    }
}

fn current_directory() -> Value {
    use std::os::unix::ffi::OsStringExt;
    Value::Text(std::env::current_dir().unwrap_or_else(|_| "/".into()).into_os_string().into_vec())
}

/// The operating system's text for an error, without the number that the standard library adds.
pub fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn default_value(setting: &Setting) -> Value {
    match setting.default {
        "(cores)" => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            Value::Number(cores.min(crate::limits::THREADS_MAX) as i64)
        }
        "(current)" => current_directory(),
        text if !setting.kind.takes_words() => {
            setting.kind.read(&Value::Words(Vec::new()), &[text.as_bytes()]).expect("defaults fit their kinds")
        }
        text => {
            let words = super::file::split_words(text.as_bytes()).expect("defaults are well formed");
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            setting.kind.read(&Value::Words(Vec::new()), &words).expect("defaults fit their kinds")
        }
    }
}
