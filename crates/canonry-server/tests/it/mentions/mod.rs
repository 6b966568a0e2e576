//! Commands for Canonry in comments, through webhooks and against the emulated GitHub.

mod at_lines;
mod commands;
mod hostile;
mod late;
mod once;
mod permissions;
mod starving;
mod undoing;
mod why;
