//! Plans in the console: who sees what, whose word is stored, what is queued and what is refused.

mod decisions;
mod deeds;
mod pages;
mod scripts;
mod setting;
mod standing;
