//! Chaos: service processes that are killed at random moments, a GitHub that fails in every way, and a database that
//! goes away. Nothing is lost, nothing is posted twice, nothing leaks.

mod checks;
mod child;
mod kills;
mod life;
mod readiness;
mod replica;
