//! How often a bot was right in a repository.

use crate::{Login, Share};

#[derive(Debug, Clone, PartialEq)]
pub struct BotRecord {
    pub login: Login,
    /// Its remarks so far.
    pub remarks: u64,
    /// Those that somebody else made too: another bot, a person, or Canonry.
    pub agreed: u64,
    /// Those that people decided about; the others are open.
    pub share: Share,
}

impl BotRecord {
    /// The record in words without a percentage, because comments on GitHub have none: `12 of 20 right here, likely
    /// between 8 and 15`.
    pub fn in_counts(&self) -> String {
        let (right, all) = (self.share.right, self.share.all());
        if all == 0 {
            return "none decided yet".to_owned();
        }
        let interval = self.share.interval();
        let of_all = |share: f64| (share * all as f64).round() as u64;
        format!("{right} of {all} right here, likely between {} and {}", of_all(interval.low), of_all(interval.high))
    }
}

#[cfg(test)]
mod tests {
    use super::BotRecord;
    use crate::Share;

    #[test]
    fn a_record_is_a_count_with_its_interval() {
        let record = |right, wrong| {
            let login = "coderabbitai[bot]".parse().expect("a login");
            BotRecord { login, remarks: 40, agreed: 3, share: Share { right, wrong } }
        };
        assert_eq!(record(0, 0).in_counts(), "none decided yet");
        assert_eq!(record(12, 8).in_counts(), "12 of 20 right here, likely between 8 and 16");
        assert_eq!(record(3, 0).in_counts(), "3 of 3 right here, likely between 1 and 3");
    }
}
