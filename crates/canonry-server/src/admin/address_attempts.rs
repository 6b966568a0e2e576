//! Limits how often one address may try something that is open to strangers: an admin token, a draft.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Tries within [`WINDOW`] before the address is blocked for a while. They are enough for typing errors; at ten a
/// minute even a token of six letters takes decades to guess.
const MOST: usize = 10;
const WINDOW: SignedDuration = SignedDuration::from_mins(1);
/// The most addresses that are stored. An attacker with more addresses than this is not slowed down by counting.
const MOST_ADDRESSES: usize = 10_000;

/// The latest tries by address, so that one address cannot lock out another. `None` counts clients without a
/// known address.
#[derive(Default)]
pub struct AddressAttempts(Mutex<HashMap<Option<IpAddr>, VecDeque<Timestamp>>>);

impl AddressAttempts {
    /// Whether this address may try now.
    pub fn may_try(&self, peer: Option<IpAddr>, now: Timestamp) -> bool {
        let tries = self.lock();
        tries.get(&peer.map(network)).is_none_or(|tries| tries.iter().filter(|at| is_recent(**at, now)).count() < MOST)
    }

    pub fn note(&self, peer: Option<IpAddr>, now: Timestamp) {
        let mut known = self.lock();
        if known.len() >= MOST_ADDRESSES {
            known.retain(|_, tries| tries.back().is_some_and(|last| is_recent(*last, now)));
            if known.len() >= MOST_ADDRESSES {
                known.clear();
            }
        }
        let tries = known.entry(peer.map(network)).or_default();
        if tries.len() == MOST {
            tries.pop_front();
        }
        tries.push_back(now);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, VecDeque<Timestamp>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at.duration_until(now) < WINDOW
}

/// The address range that one person usually has. For IPv6 that is a /64 network, which has more addresses than can
/// be counted.
pub(crate) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(peer) => IpAddr::V4(peer),
        IpAddr::V6(peer) => IpAddr::V6(Ipv6Addr::from_bits(peer.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use jiff::Timestamp;

    use super::{AddressAttempts, MOST_ADDRESSES};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn ten_wrong_tokens_in_a_minute_are_enough() {
        let wrong = AddressAttempts::default();
        for second in 0..10 {
            assert!(wrong.may_try(None, at(second)));
            wrong.note(None, at(second));
        }
        assert!(!wrong.may_try(None, at(10)) && !wrong.may_try(None, at(59)));
        assert!(wrong.may_try(None, at(60)), "the first is a minute ago");
        wrong.note(None, at(60));
        assert!(!wrong.may_try(None, at(60)));
        assert!(wrong.may_try(None, at(500)));
    }

    #[test]
    fn nobody_is_kept_out_by_another_address() {
        let wrong = AddressAttempts::default();
        for _ in 0..10 {
            wrong.note(peer("192.0.2.1"), at(0));
            wrong.note(peer("2001:db8::1"), at(0));
        }
        for same in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::ffff:1"] {
            assert!(!wrong.may_try(peer(same), at(1)), "{same}");
        }
        for other in ["192.0.2.2", "2001:db8:0:1::1"] {
            assert!(wrong.may_try(peer(other), at(1)), "{other}");
        }
        assert!(wrong.may_try(None, at(1)));
    }

    #[test]
    fn not_every_address_there_is_is_kept() {
        let wrong = AddressAttempts::default();
        for network in 0..2 * MOST_ADDRESSES as u128 + 1 {
            wrong.note(Some(Ipv6Addr::from_bits(network << 64).into()), at(0));
        }
        assert!(wrong.lock().len() <= MOST_ADDRESSES);
    }
}
