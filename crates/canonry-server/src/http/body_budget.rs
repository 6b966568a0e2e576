//! Limits the bytes of request bodies in memory, for all requests together. Bodies beyond the limit are refused.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Nearly every webhook is smaller; GitHub's examples have 5 to 30 KB.
const SMALL: usize = 128 * 1024;
/// For the first [`SMALL`] bytes of every body: 256 bodies of that size at once, thousands of the usual ones.
const FOR_ALL: usize = 32 * 1024 * 1024;
/// For the rest of large bodies: three of the largest that GitHub sends. Senders of large bodies may be strangers and
/// slow; they can use up this budget and still leave room for the usual webhooks.
const FOR_LARGE: usize = 96 * 1024 * 1024;
/// The least that a request counts. Its headers and its task take memory too.
const LEAST: usize = 4 * 1024;
/// Memory is reserved in steps, not for each packet.
const STEP: usize = 64 * 1024;

/// The bytes that all requests together may use.
#[derive(Debug, Clone)]
pub(crate) struct BodyBudget {
    for_all: Arc<Semaphore>,
    for_large: Arc<Semaphore>,
}

/// The bytes that one request uses, until it is dropped.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    small: OwnedSemaphorePermit,
    large: OwnedSemaphorePermit,
}

impl BodyBudget {
    pub(crate) fn new() -> Self {
        Self { for_all: Arc::new(Semaphore::new(FOR_ALL)), for_large: Arc::new(Semaphore::new(FOR_LARGE)) }
    }

    /// Reserves memory for a request whose body has not arrived; `None` if there is no room.
    pub(crate) fn begin(&self) -> Option<BodyPermit> {
        Some(BodyPermit { small: take(&self.for_all, LEAST)?, large: take(&self.for_large, 0)? })
    }
}

impl BodyPermit {
    /// Reserves memory for a body of this length; `false` if there is no room.
    pub(crate) fn grow_to(&mut self, length: usize) -> bool {
        grow(&mut self.small, length.min(SMALL).next_multiple_of(LEAST))
            && grow(&mut self.large, length.saturating_sub(SMALL).next_multiple_of(STEP))
    }
}

fn grow(held: &mut OwnedSemaphorePermit, bytes: usize) -> bool {
    let more = bytes.saturating_sub(held.num_permits());
    if more == 0 {
        return true;
    }
    let Some(permit) = take(held.semaphore(), more) else { return false };
    held.merge(permit);
    true
}

fn take(from: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    Arc::clone(from).try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::{BodyBudget, FOR_ALL, FOR_LARGE, LEAST, SMALL};

    fn free(budget: &BodyBudget) -> (usize, usize) {
        (budget.for_all.available_permits(), budget.for_large.available_permits())
    }

    #[test]
    fn what_is_held_is_given_back() {
        let budget = BodyBudget::new();
        let mut held = budget.begin().expect("room");
        assert_eq!(free(&budget), (FOR_ALL - LEAST, FOR_LARGE));
        assert!(held.grow_to(10) && held.grow_to(LEAST + 1));
        assert_eq!(free(&budget), (FOR_ALL - 2 * LEAST, FOR_LARGE));
        assert!(held.grow_to(25 * 1024 * 1024));
        assert_eq!(free(&budget), (FOR_ALL - SMALL, FOR_LARGE - 25 * 1024 * 1024 + SMALL));
        drop(held);
        assert_eq!(free(&budget), (FOR_ALL, FOR_LARGE));
    }

    #[test]
    fn large_bodies_leave_room_for_the_usual_ones() {
        let budget = BodyBudget::new();
        let mut large = Vec::new();
        loop {
            let mut held = budget.begin().expect("they never take it all");
            if !held.grow_to(25 * 1024 * 1024) {
                break;
            }
            large.push(held);
        }
        assert_eq!(large.len(), 3);
        let usual: Vec<_> = (0..1000).map(|_| budget.begin()).collect();
        assert!(usual.into_iter().all(|held| held.is_some_and(|mut held| held.grow_to(30_000))));
    }

    #[test]
    fn requests_without_a_body_are_counted_too() {
        let budget = BodyBudget::new();
        let held: Vec<_> = std::iter::from_fn(|| budget.begin()).collect();
        assert_eq!(held.len(), FOR_ALL / LEAST);
        drop(held);
        assert!(budget.begin().is_some());
    }
}
