//! Text from strangers, made harmless for a terminal.

pub(crate) use canonry_domain::printable::{block, is_escaped, one_line};
