//! The compiled-in model, and the remote ones against scripted servers on loopback.

mod chat;
mod local;
mod remote;
mod scripted_server;
