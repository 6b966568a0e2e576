#![doc = include_str!("../README.md")]

mod access;
mod advice;
mod resources;
mod server;
mod tool_answers;
mod tool_inputs;
mod tools;
mod transports;

pub use access::{Caller, RepoAccess};
pub use server::McpServer;
pub use transports::{mcp_routes, serve_stdio};
