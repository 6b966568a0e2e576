//! Tests of the test kit: the browser, databases, and the emulated GitHub seen from outside.

#[cfg(feature = "browser")]
mod browser;
#[cfg(feature = "github")]
mod client;
#[cfg(feature = "database")]
mod database;
#[cfg(feature = "github")]
mod github;
#[cfg(all(feature = "github", feature = "openapi"))]
mod github_openapi;
