//! Limits how many connections or requests one address has at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::admin::address_attempts::network;

#[derive(Debug, Clone)]
pub(crate) struct AddressPlaces {
    most: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One address's place, freed on drop.
#[derive(Debug)]
pub(crate) struct AddressPlace {
    places: AddressPlaces,
    network: IpAddr,
}

impl AddressPlaces {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Takes a place; `None` if this address has used all of its places.
    pub(crate) fn take(&self, address: IpAddr) -> Option<AddressPlace> {
        let network = network(address);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(network).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(AddressPlace { places: self.clone(), network })
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AddressPlaces;

    #[test]
    fn an_address_takes_its_own_places_alone_and_gives_them_back() {
        let places = AddressPlaces::new(2);
        let take = |address: &str| places.take(address.parse().expect("an address"));
        let (first, second) = (take("192.0.2.1"), take("::ffff:192.0.2.1"));
        assert!(first.is_some() && second.is_some() && take("192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some());
        drop(first);
        assert!(take("192.0.2.1").is_some());
        drop(second);
        assert!(places.taken.lock().expect("whole").is_empty(), "nothing is kept of who has left");
    }
}
