//! Accounts, tokens, rights and the GitHub App.

pub(crate) mod accounts;
pub(crate) mod app;
pub(crate) mod collaborators;
pub(crate) mod oauth;

pub use accounts::{Account, Permission, Token, TokenKind, User};
pub use app::{App, Installation, TEST_APP_PRIVATE_KEY, TEST_APP_PUBLIC_KEY};
pub use oauth::OauthApp;
