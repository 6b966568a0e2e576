//! One long scenario against the emulated GitHub with a moved clock: suggestions announce closes, people cancel some
//! of them, the others are closed, and objections stop all closing.

mod story;
