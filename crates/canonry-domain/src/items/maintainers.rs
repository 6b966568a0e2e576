//! The set of maintainers of a repository.

use std::collections::BTreeSet;

use crate::Login;

/// The maintainers of a repository; letter case does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maintainers {
    // The set contains keys, not logins: each comparison of two logins would convert both to lower case again.
    keys: BTreeSet<String>,
}

impl Maintainers {
    pub fn contains(&self, login: &Login) -> bool {
        self.keys.contains(&login.key())
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl FromIterator<Login> for Maintainers {
    fn from_iter<I: IntoIterator<Item = Login>>(logins: I) -> Self {
        Self { keys: logins.into_iter().map(|login| login.key()).collect() }
    }
}

impl<'a> FromIterator<&'a Login> for Maintainers {
    fn from_iter<I: IntoIterator<Item = &'a Login>>(logins: I) -> Self {
        Self { keys: logins.into_iter().map(Login::key).collect() }
    }
}
