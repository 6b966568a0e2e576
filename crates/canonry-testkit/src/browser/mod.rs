//! A real browser for tests: chromium without a window, spoken to in its own protocol through two pipes.
//!
//! Nothing listens on the network, and a browser whose test was killed ends by itself, because its pipe is closed.

mod accessibility;
mod connection;
mod keys;
mod page;
mod problems;
mod program;

pub use accessibility::{AXE_VARIABLE, Violation};
pub use page::{Page, Scheme, Viewport};
pub use program::{Browser, CHROMIUM_VARIABLE, WITHOUT_BROWSER_VARIABLE, is_missing};
