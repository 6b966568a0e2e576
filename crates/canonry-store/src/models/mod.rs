//! Model calls and their cost.

pub(crate) mod calls;
pub(crate) mod totals;

pub use calls::{LlmCall, NewLlmCall};
pub use totals::LlmTotals;
