//! The emulator's behaviour, seen from outside.

mod checks;
mod cloning;
mod faults;
mod gone;
mod limits;
mod listing;
mod pulls;
mod requests;
mod reviewing;
mod rights;
mod setting;
mod threads;
mod webhooks;
