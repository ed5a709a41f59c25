//! The settings that commands obey, as they stood when the attempt began.

use crate::random::Random;
use crate::store::events::EventClass;
use crate::types::access;

/// A copy of the run-time settings, so that a command sees one state of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeLimits {
    /// `proto-max-bulk-len`: the longest string, in bytes.
    pub proto_max_bulk_len: u64,
    /// `list-max-listpack-size`: elements (positive) or a size class of 4 KiB doubled (negative) up to which a list is called a listpack.
    pub list_max_listpack_size: i32,
    /// Whether `maxmemory-policy` is one of the LFU kind, so that access words hold a counter and not a clock.
    pub lfu: bool,
    /// `lfu-decay-time`: minutes after which an unused key's counter loses one; 0 is never.
    pub lfu_decay_minutes: u32,
    /// `lfu-log-factor`: how much rarer the counter's growth becomes with each step.
    pub lfu_log_factor: u32,
    /// The classes of key events that are recorded.
    pub events: EventClass,
    /// Whether small integers count as shared objects (OBJECT REFCOUNT): not under `maxmemory` with an LRU or LFU policy.
    pub shared_integers: bool,
}

impl Default for RuntimeLimits {
    fn default() -> Self {
        Self {
            proto_max_bulk_len: 512 * 1024 * 1024,
            list_max_listpack_size: -2,
            lfu: false,
            lfu_decay_minutes: 1,
            lfu_log_factor: 10,
            events: EventClass::default(),
            shared_integers: true,
        }
    }
}

impl RuntimeLimits {
    /// The access word of a value made at `now_ms`.
    #[inline]
    pub(super) fn new_access(&self, now_ms: i64) -> u32 {
        if self.lfu { access::lfu_new_word(now_ms) } else { access::lru_word(now_ms) }
    }

    /// The access word of a value used at `now_ms`, whose access word was `word`.
    #[inline]
    pub(super) fn touched(&self, word: u32, now_ms: i64) -> u32 {
        if self.lfu { self.counted(word, now_ms) } else { access::lru_word(now_ms) }
    }

    #[cold]
    fn counted(&self, word: u32, now_ms: i64) -> u32 {
        let random = Random::from_entropy().next_u64() as u32;
        access::lfu_used_word(word, now_ms, self.lfu_decay_minutes, self.lfu_log_factor, random)
    }
}
