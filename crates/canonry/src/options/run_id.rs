//! An id for each run, which connects its output with its log lines.

use std::fmt;

use jiff::Timestamp;

/// Sorts by time and is unique: milliseconds, then 64 random bits, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunId(String);

impl RunId {
    /// The id of a run that began at `now`; `chance` is any random number.
    pub(crate) fn new(now: Timestamp, chance: u64) -> Self {
        Self(format!("{:012x}{chance:016x}", now.as_millisecond()))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::RunId;

    #[test]
    fn later_runs_sort_behind_earlier_ones() {
        let early = RunId::new("2026-02-01T00:00:00Z".parse().expect("valid"), u64::MAX).to_string();
        let late = RunId::new("2026-02-01T00:00:00.001Z".parse().expect("valid"), 0).to_string();
        assert!(early < late, "{early} {late}");
        assert_eq!((early.len(), late.len()), (28, 28));
    }
}
