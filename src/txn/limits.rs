//! The settings that commands obey, as they stood when the attempt began.

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
            shared_integers: true,
        }
    }
}

impl RuntimeLimits {
    /// The access word of a value made at `now_ms`.
    #[inline]
    pub(super) fn new_access(&self, now_ms: i64) -> u32 {
        (now_ms / 1000) as u32
    }

    /// The access word of a value used at `now_ms`.
    #[inline]
    pub(super) fn touched(&self, _word: u32, now_ms: i64) -> u32 {
        (now_ms / 1000) as u32
    }
}
