//! Tests people's feedback on findings on an emulated GitHub: thumbs, and replies in threads.

mod polling;
mod setting;
mod threads;
