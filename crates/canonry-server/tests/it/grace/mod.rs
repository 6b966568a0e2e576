//! One story against the emulated GitHub with a moved clock: suggestions announce closes, people call them off, what
//! nobody objects to is closed, and what people take back stops all closing.

mod story;
