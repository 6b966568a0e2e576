//! The duplicate map and one cluster.

pub(crate) mod cluster_page;
pub(crate) mod map;
