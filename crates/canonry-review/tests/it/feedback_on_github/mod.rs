//! What people say to findings on an emulated GitHub: their thumbs, and their words in threads.

mod polling;
mod setting;
mod threads;
