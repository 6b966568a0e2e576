//! Plans: who sees what, whose decisions are stored, what is queued and what is refused.

mod actions;
mod brakes;
mod decisions;
mod pages;
mod scripts;
