//! Authenticates the client as an App or with a token, and signs people in.

pub(crate) mod app_access;
pub(crate) mod app_manifest;
pub(crate) mod credentials;
pub(crate) mod oauth;
pub(crate) mod secret;

pub use app_access::{APP_EVENTS, APP_PERMISSIONS};
pub use app_manifest::{CreatedApp, app_manifest, created_app};
pub use credentials::{AppKey, Auth, Scope};
pub use oauth::{OauthClient, code_challenge};
pub use secret::Secret;
