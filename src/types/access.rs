//! The access word of a root: when, or how often, the value was used.
//!
//! Under an LRU policy (and without any) the word is a clock of whole seconds. Under an LFU policy it packs a clock of minutes into the
//! upper 24 bits and a logarithmic counter of uses, 0 to 255, into the lower eight, with the probabilities that Redis' documentation of
//! `lfu-log-factor` and `lfu-decay-time` describes.

/// The counter that a new value starts with, so that it is not evicted at once.
const LFU_INITIAL_COUNTER: u8 = 5;

const MINUTES_MASK: u32 = (1 << 24) - 1;

fn minutes(now_ms: i64) -> u32 {
    (now_ms / 60_000) as u32 & MINUTES_MASK
}

fn pack(now_ms: i64, counter: u8) -> u32 {
    minutes(now_ms) << 8 | u32::from(counter)
}

/// The LRU word of a value used at `now_ms`.
#[inline]
pub fn lru_word(now_ms: i64) -> u32 {
    (now_ms / 1000) as u32
}

/// Seconds since the value was used, from its LRU word.
pub fn idle_seconds(word: u32, now_ms: i64) -> u32 {
    let elapsed = lru_word(now_ms).wrapping_sub(word);
    // A clock that was set back makes the last use lie in the future; that is idle for no time, not for a century.
    if elapsed > u32::MAX / 2 { 0 } else { elapsed }
}

/// The LFU word of a new value.
pub fn lfu_new_word(now_ms: i64) -> u32 {
    pack(now_ms, LFU_INITIAL_COUNTER)
}

/// The counter in an LFU word, less one for each `decay_minutes` since it was last used (never, when zero).
pub fn lfu_counter(word: u32, now_ms: i64, decay_minutes: u32) -> u8 {
    let counter = (word & 0xff) as u8;
    let elapsed = minutes(now_ms).wrapping_sub(word >> 8) & MINUTES_MASK;
    let periods = elapsed.checked_div(decay_minutes).unwrap_or(0);
    counter.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// The LFU word after one more use; `random` is uniform over all its values.
pub fn lfu_used_word(word: u32, now_ms: i64, decay_minutes: u32, log_factor: u32, random: u32) -> u32 {
    let counter = lfu_counter(word, now_ms, decay_minutes);
    let above_initial = u64::from(counter.saturating_sub(LFU_INITIAL_COUNTER));
    // The counter grows with probability 1 / (above_initial * log_factor + 1).
    let grows = u64::from(random) * (above_initial * u64::from(log_factor) + 1) <= u64::from(u32::MAX);
    pack(now_ms, if grows { counter.saturating_add(1) } else { counter })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts_whole_seconds_and_is_never_negative() {
        let word = lru_word(5_000_999);
        assert_eq!(idle_seconds(word, 5_000_000), 0);
        assert_eq!(idle_seconds(word, 5_007_000), 7);
        assert_eq!(idle_seconds(word, 4_000_000), 0);
    }

    #[test]
    fn the_counter_decays_by_the_minute_and_stops_at_zero() {
        let word = lfu_new_word(0);
        assert_eq!(lfu_counter(word, 59_999, 1), 5);
        assert_eq!(lfu_counter(word, 120_000, 1), 3);
        assert_eq!(lfu_counter(word, 120_000, 2), 4);
        assert_eq!(lfu_counter(word, 120_000, 0), 5);
        assert_eq!(lfu_counter(word, 60_000 * 100_000, 1), 0);
    }

    #[test]
    fn the_counter_grows_always_at_first_and_then_ever_more_rarely() {
        let mut word = lfu_new_word(0);
        word = lfu_used_word(word, 0, 1, 10, u32::MAX);
        assert_eq!(lfu_counter(word, 0, 1), 6);
        // One above the initial counter: one use in eleven counts.
        assert_eq!(lfu_counter(lfu_used_word(word, 0, 1, 10, u32::MAX / 10), 0, 1), 6);
        assert_eq!(lfu_counter(lfu_used_word(word, 0, 1, 10, u32::MAX / 12), 0, 1), 7);
        for _ in 0..1000 {
            word = lfu_used_word(word, 0, 1, 10, 0);
        }
        assert_eq!(lfu_counter(word, 0, 1), 255);
    }
}
