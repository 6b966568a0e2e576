//! Tests of the compiled-in model, and of remote models with scripted servers on loopback.

mod chat;
mod local;
mod remote;
mod scripted_server;
