//! Tests reviews with real repositories, real databases, the emulated GitHub, and hostile input to all of them.

mod bad_input;
mod feedback_on_github;
mod pipeline;
mod publication;
mod repositories;
mod sarif;
