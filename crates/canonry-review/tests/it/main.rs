//! Reviews: real repositories, real databases, the emulated GitHub, and what strangers put into all of them.

mod bad_input;
mod feedback_on_github;
mod pipeline;
mod publication;
mod repositories;
mod sarif;
