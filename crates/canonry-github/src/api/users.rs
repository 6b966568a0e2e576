//! Defines accounts as answers contain them.

use canonry_domain::Login;
use serde::{Deserialize, Serialize};

use crate::api::lenient;

/// An account: a person, an organisation or a bot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestUser {
    pub login: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub id: i64,
    /// `User`, `Organization`, `Bot`, `Mannequin`.
    #[serde(rename = "type", deserialize_with = "lenient::or_default")]
    pub account_type: String,
}

impl RestUser {
    /// Whether the account is a bot. GitHub marks Apps by type and by the ending of the login.
    pub fn is_bot(&self) -> bool {
        self.account_type.eq_ignore_ascii_case("bot") || self.login.to_lowercase().ends_with("[bot]")
    }

    /// The login; `None` if it is not valid.
    pub fn to_login(&self) -> Option<Login> {
        self.login.parse().ok()
    }
}

/// The App through which something was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppSlug {
    #[serde(deserialize_with = "lenient::or_default")]
    pub id: i64,
    /// The App's name in URLs; its account is `slug[bot]`.
    #[serde(deserialize_with = "lenient::or_default")]
    pub slug: String,
}
