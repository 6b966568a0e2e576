//! Tests the client against the emulated GitHub, and webhooks against GitHub's own examples.

mod app_auth;
mod calls;
mod emulated;
mod oauth;
mod paging;
mod reading;
mod webhook_examples;
mod writing;
