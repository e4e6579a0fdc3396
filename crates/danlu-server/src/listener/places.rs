//! How many connections and streams there may be at once, and who makes room.
//!
//! Each connection takes a descriptor, and often a second one for what it reads. Descriptors are also what the server observes
//! workers, launches them and writes its database with, so a part of them is kept from connections ([`ConnectionBounds::of`]). Invariants:
//!
//! - connections and what they have open never take the reserve;
//! - no account and no address takes all connections, and streams, which have no end, never take more than half of them;
//! - where there is no place left, a connection on which nothing is being answered makes room for a new one: whoever connects
//!   and says nothing keeps nobody out.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use danlu_types::account::AccountName;
use nix::sys::resource::{Resource, getrlimit};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;

/// The most of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionBounds {
    pub(crate) connections: usize,
    pub(crate) per_address: usize,
    /// Connections on which an account was the last to ask.
    pub(crate) per_account: usize,
    /// Streams, downloads and terminals.
    pub(crate) streams: usize,
    pub(crate) streams_per_account: usize,
}

impl ConnectionBounds {
    /// As many as fit; where the limit cannot be told, what every system grants.
    pub(crate) fn of_this_process() -> Self {
        Self::of(getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft))
    }

    /// For a process that may have so many files open.
    fn of(open_files: u64) -> Self {
        let files = usize::try_from(open_files).unwrap_or(usize::MAX);
        let reserve = (files / 4).clamp(128, 4096).min(files / 2);
        // A terminal has a socket to its launcher, a download its file, a page of a log the log.
        let connections = ((files - reserve) / 2).max(8);
        let streams = connections / 2;
        ConnectionBounds {
            connections,
            per_address: connections - connections / 4,
            per_account: connections / 4,
            streams,
            streams_per_account: (streams / 4).clamp(2, 256),
        }
    }
}

/// Why somebody gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Connections,
    Address,
    Account,
    Streams,
    StreamsOfAccount,
}

/// Who is here.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    bounds: ConnectionBounds,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Counts connections, and the times at which they came to rest.
    clock: u64,
    guests: HashMap<u64, Guest>,
    /// Those on which nothing is being answered, by when that began.
    idle: BTreeMap<u64, u64>,
    addresses: HashMap<IpAddr, Address>,
    accounts: HashMap<AccountName, usize>,
    streams: usize,
    streams_of: HashMap<AccountName, usize>,
}

#[derive(Debug, Default)]
struct Address {
    connections: usize,
    idle: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Guest {
    address: IpAddr,
    account: Option<AccountName>,
    /// Since when nothing is being answered on it.
    idle: Option<u64>,
    leave: CancellationToken,
}

/// A connection's place; dropped, it is free again.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    places: Arc<ConnectionLimits>,
    number: u64,
    leave: CancellationToken,
}

/// One stream of an account; dropped, it is over.
#[derive(Debug)]
pub(crate) struct Stream {
    places: Arc<ConnectionLimits>,
    account: AccountName,
}

impl ConnectionLimits {
    pub(crate) fn new(bounds: ConnectionBounds) -> Arc<Self> {
        Arc::new(ConnectionLimits { bounds, state: Mutex::default() })
    }

    /// How many connections and streams there are.
    pub(crate) fn taken(&self) -> (usize, usize) {
        let state = self.state();
        (state.guests.len(), state.streams)
    }

    /// A place for a connection from there. Where none is left, the one that has been idle for longest makes room.
    /// `shared`: the address is a proxy's, which stands for many.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr, shared: bool) -> Result<ConnectionPermit, Full> {
        let mut state = self.state();
        let of_address = state.addresses.get(&address);
        if !shared && of_address.is_some_and(|here| here.connections >= self.bounds.per_address) {
            let idle = of_address.and_then(|here| here.idle.first_key_value()).map(|(_, number)| *number);
            state.evict(idle.ok_or(Full::Address)?);
        }
        if state.guests.len() >= self.bounds.connections {
            let idle = state.idle.first_key_value().map(|(_, number)| *number);
            state.evict(idle.ok_or(Full::Connections)?);
        }
        let number = state.tick();
        let leave = CancellationToken::new();
        state.addresses.entry(address).or_default().connections += 1;
        state.guests.insert(number, Guest { address, account: None, idle: None, leave: leave.clone() });
        // Nothing was asked yet.
        state.rest(number);
        Ok(ConnectionPermit { places: Arc::clone(self), number, leave })
    }

    /// Begins something of an account's that has no end of its own.
    pub(crate) fn stream(self: &Arc<Self>, account: &AccountName) -> Result<Stream, Full> {
        let mut state = self.state();
        if state.streams_of.get(account).is_some_and(|own| *own >= self.bounds.streams_per_account) {
            return Err(Full::StreamsOfAccount);
        }
        if state.streams >= self.bounds.streams {
            return Err(Full::Streams);
        }
        state.streams += 1;
        *state.streams_of.entry(account.clone()).or_default() += 1;
        Ok(Stream { places: Arc::clone(self), account: account.clone() })
    }

    pub(crate) fn bounds(&self) -> ConnectionBounds {
        self.bounds
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Nothing is being answered on it from now on.
    fn rest(&mut self, number: u64) {
        let since = self.tick();
        let Some(guest) = self.guests.get_mut(&number).filter(|guest| guest.idle.is_none()) else { return };
        guest.idle = Some(since);
        self.idle.insert(since, number);
        self.addresses.entry(guest.address).or_default().idle.insert(since, number);
    }

    fn wake(&mut self, number: u64) {
        let Some(guest) = self.guests.get_mut(&number) else { return };
        let Some(since) = guest.idle.take() else { return };
        self.idle.remove(&since);
        if let Some(here) = self.addresses.get_mut(&guest.address) {
            here.idle.remove(&since);
        }
    }

    fn evict(&mut self, number: u64) {
        if let Some(guest) = self.remove(number) {
            guest.leave.cancel();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Guest> {
        self.wake(number);
        let guest = self.guests.remove(&number)?;
        if let Some(here) = self.addresses.get_mut(&guest.address) {
            here.connections -= 1;
            if here.connections == 0 {
                self.addresses.remove(&guest.address);
            }
        }
        if let Some(account) = &guest.account {
            give_back(&mut self.accounts, account);
        }
        Some(guest)
    }
}

fn give_back(counts: &mut HashMap<AccountName, usize>, account: &AccountName) {
    if let Some(count) = counts.get_mut(account) {
        *count -= 1;
        if *count == 0 {
            counts.remove(account);
        }
    }
}

impl ConnectionPermit {
    /// A request has come. False where the place was given to somebody else meanwhile.
    pub(crate) fn wake(&self) -> bool {
        let mut state = self.places.state();
        state.wake(self.number);
        state.guests.contains_key(&self.number)
    }

    /// The answer is over.
    pub(crate) fn rest(&self) {
        self.places.state().rest(self.number);
    }

    /// From now on the connection counts as this account's.
    pub(crate) fn belongs_to(&self, account: &AccountName) -> Result<(), Full> {
        let mut state = self.places.state();
        let state = &mut *state;
        let Some(guest) = state.guests.get_mut(&self.number) else { return Ok(()) };
        if guest.account.as_ref() == Some(account) {
            return Ok(());
        }
        if state.accounts.get(account).is_some_and(|own| *own >= self.places.bounds.per_account) {
            return Err(Full::Account);
        }
        *state.accounts.entry(account.clone()).or_default() += 1;
        if let Some(before) = guest.account.replace(account.clone()) {
            give_back(&mut state.accounts, &before);
        }
        Ok(())
    }

    /// Waits until somebody else needs the place more.
    pub(crate) fn lost(&self) -> impl Future<Output = ()> + Send + 'static {
        self.leave.clone().cancelled_owned()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        drop(self.places.state().remove(self.number));
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.places.state();
        state.streams -= 1;
        give_back(&mut state.streams_of, &self.account);
    }
}
