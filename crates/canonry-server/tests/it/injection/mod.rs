//! The injection suite: hostile texts at every place that strangers can write to, run through the service's own
//! handlers on the emulated GitHub, once with the compiled-in judge and once with a model that obeys every text.
//!
//! `texts.json` contains the texts. In every world #1 is the report that the carriers resemble, #5 exists and resembles
//! nothing, and #4242 does not exist.

mod comments;
mod injection_world;
mod issues;
mod obedient_model;
mod pulls;
mod suite;
mod texts;
