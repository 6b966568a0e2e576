//! The subject of a review: a pull request or a branch.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ItemNumber;
use crate::text::text_newtype::string_conversions;

/// The subject of a review. Its findings are tracked from one review of it to the next.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ReviewSubject {
    Pull(ItemNumber),
    /// A branch without a named pull request.
    Branch(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a review is about pull/NUMBER or branch/NAME")]
pub struct InvalidSubject;

impl ReviewSubject {
    pub fn pull(&self) -> Option<ItemNumber> {
        match self {
            Self::Pull(number) => Some(*number),
            Self::Branch(_) => None,
        }
    }
}

/// The stored text, which `FromStr` reads.
impl fmt::Display for ReviewSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pull(number) => write!(formatter, "pull/{number}"),
            Self::Branch(name) => write!(formatter, "branch/{name}"),
        }
    }
}

impl FromStr for ReviewSubject {
    type Err = InvalidSubject;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once('/').ok_or(InvalidSubject)?;
        match kind {
            "pull" => {
                let number = name.parse().ok().and_then(|number: i64| ItemNumber::new(number).ok());
                number.map(Self::Pull).ok_or(InvalidSubject)
            }
            "branch" if !name.is_empty() => Ok(Self::Branch(name.to_owned())),
            _ => Err(InvalidSubject),
        }
    }
}

string_conversions!(ReviewSubject, InvalidSubject);

#[cfg(test)]
mod tests {
    use super::{InvalidSubject, ReviewSubject};
    use crate::ItemNumber;
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn only_pull_requests_and_branches_are_subjects() {
        let pull = ReviewSubject::Pull(ItemNumber::new(12).expect("positive"));
        assert_eq!((pull.to_string().as_str(), pull.pull()), ("pull/12", ItemNumber::new(12).ok()));
        assert_eq!("branch/feature/a b".parse(), Ok(ReviewSubject::Branch("feature/a b".to_owned())));
        // A branch may have any name, even that of a pull request's subject.
        assert_eq!("branch/pull/12".parse(), Ok(ReviewSubject::Branch("pull/12".to_owned())));
        for text in ["", "pull", "pull/", "pull/0", "pull/-1", "pull/x", "branch/", "branch", "tag/v1"] {
            assert_eq!(text.parse::<ReviewSubject>(), Err(InvalidSubject), "{text}");
        }
        let json = serde_json::to_string(&pull).expect("JSON");
        assert_eq!((json.as_str(), serde_json::from_str(&json).expect("read back")), ("\"pull/12\"", pull));
    }

    proptest! {
        #[test]
        fn is_read_back(number in 1_i64.., name in ".+") {
            for subject in [ReviewSubject::Pull(ItemNumber::new(number).expect("positive")), ReviewSubject::Branch(name)] {
                prop_assert_eq!(subject.to_string().parse(), Ok(subject));
            }
        }
    }
}
