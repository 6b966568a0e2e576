//! The points between two steps, where work can end without harm.

use std::ops::ControlFlow;
use std::sync::Arc;

/// A point between two steps of the work on one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// The entry is ours to work on.
    Claimed,
    /// GitHub was asked how things stand.
    Looked,
    /// The caller's check has let it through.
    Checked,
    /// It is stored that something is about to be sent.
    SendStored,
    /// GitHub has answered, or has not; what it said is not stored yet.
    Answered,
    /// What came of it is stored.
    StepStored,
}

/// Asked at every point whether to go on. A service that drains breaks here; what it leaves behind is
/// what a kill would leave, and the next worker goes on from there once the lease has ended.
pub type Checkpoint = Arc<dyn Fn(Point) -> ControlFlow<()> + Send + Sync>;
