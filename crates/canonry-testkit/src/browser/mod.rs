//! A real browser for tests: headless chromium, controlled through its own protocol over two pipes.
//!
//! Nothing listens on the network. If a test is killed, its browser ends by itself, because its pipe is closed.

mod accessibility;
mod connection;
mod keys;
mod page;
mod problems;
mod program;

pub use accessibility::{AXE_VARIABLE, Violation};
pub use page::{Page, Scheme, Viewport};
pub use program::{Browser, CHROMIUM_VARIABLE, WITHOUT_BROWSER_VARIABLE, is_missing};
