//! Text from strangers, made harmless for a terminal.

pub(crate) use canonry_domain::printable::{block, is_hidden, one_line};
