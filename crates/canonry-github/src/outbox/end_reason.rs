//! The stored reason why a write ended without being sent.

use std::fmt;

const UNCORRECTED: &str = "; its comment could not be corrected: ";

/// Why a write was refused or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndReason<'a> {
    pub why: &'a str,
    /// Why the comment that announced the write could not be corrected, so that it stands.
    pub uncorrected: Option<&'a str>,
}

impl<'a> EndReason<'a> {
    pub fn of_stored(reason: &'a str) -> Self {
        match reason.split_once(UNCORRECTED) {
            Some((why, uncorrected)) => Self { why, uncorrected: Some(uncorrected) },
            None => Self { why: reason, uncorrected: None },
        }
    }
}

impl fmt::Display for EndReason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.why)?;
        self.uncorrected.map_or(Ok(()), |reason| write!(formatter, "{UNCORRECTED}{reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::EndReason;

    #[test]
    fn a_reason_reads_back() {
        for uncorrected in [None, Some("it is gone")] {
            let reason = EndReason { why: "drift:source_edited", uncorrected };
            assert_eq!(EndReason::of_stored(&reason.to_string()), reason);
        }
    }
}
