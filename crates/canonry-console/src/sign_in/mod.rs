//! Signing in: sessions, cookies, roles, and what a visitor may do.

pub(crate) mod cookies;
pub(crate) mod csrf;
mod fresh_secrets;
pub(crate) mod github_round_trip;
pub(crate) mod one_time_codes;
pub(crate) mod roles;
pub(crate) mod sign_in_page;
pub(crate) mod visit;

pub use fresh_secrets::{form_key, fresh_token};
pub use one_time_codes::OneTimeCodes;
