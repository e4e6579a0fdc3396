//! The bounds hold, whoever comes.

use futures::FutureExt as _;
use proptest::prelude::*;

use super::*;

const SMALL: ConnectionBounds =
    ConnectionBounds { connections: 4, per_address: 3, per_account: 2, streams: 3, streams_per_account: 2 };

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn account(name: &str) -> AccountName {
    name.parse().expect("a name")
}

fn is_lost(place: &ConnectionPermit) -> bool {
    place.lost().now_or_never().is_some()
}

#[test]
fn whatever_may_be_open_connections_leave_a_reserve() {
    let of = |files| {
        let bounds = ConnectionBounds::of(files);
        assert!(bounds.streams <= bounds.connections / 2);
        assert!(bounds.per_account < bounds.connections && bounds.per_address < bounds.connections);
        assert!(bounds.streams_per_account * 2 <= bounds.streams, "{bounds:?}");
        (bounds.connections, bounds.streams_per_account)
    };
    assert_eq!(of(64), (16, 2));
    assert_eq!(of(1024), (384, 48));
    assert_eq!(of(20_000), (7952, 256));
    assert_eq!(of(1 << 20), (522_240, 256));
    for files in [0, 1, 16, u64::MAX] {
        let bounds = ConnectionBounds::of(files);
        assert!(bounds.connections >= 8 && bounds.streams_per_account >= 2, "{bounds:?}");
    }
}

#[test]
fn who_says_nothing_makes_room_and_who_is_being_answered_does_not() {
    let places = ConnectionLimits::new(SMALL);
    let (first, second) =
        (places.enter(address(1), false).unwrap(), places.enter(address(2), false).unwrap());
    let (third, fourth) =
        (places.enter(address(3), false).unwrap(), places.enter(address(4), false).unwrap());
    assert!(first.wake());
    // The first is being answered, so the second has been idle for longest.
    let fifth = places.enter(address(5), false).unwrap();
    assert!(is_lost(&second) && !is_lost(&first) && !second.wake());
    for busy in [&third, &fourth, &fifth] {
        assert!(busy.wake());
    }
    assert_eq!(places.enter(address(6), false).unwrap_err(), Full::Connections);
    third.rest();
    assert!(places.enter(address(6), false).is_ok());
    assert!(is_lost(&third));
}

#[test]
fn an_address_makes_room_of_its_own_and_a_proxy_stands_for_many() {
    let places = ConnectionLimits::new(SMALL);
    let own: Vec<ConnectionPermit> = (0..3).map(|_| places.enter(address(1), false).unwrap()).collect();
    let other = places.enter(address(2), false).unwrap();
    let again = places.enter(address(1), false).unwrap();
    assert!(is_lost(&own[0]) && !is_lost(&other), "its own, and nobody else's");
    for place in [&own[1], &own[2], &again] {
        assert!(place.wake());
    }
    assert_eq!(places.enter(address(1), false).unwrap_err(), Full::Address);
    assert!(places.enter(address(1), true).is_ok());
}

#[test]
fn an_account_has_so_many_connections_and_streams() {
    let places = ConnectionLimits::new(SMALL);
    let (ada, eve) = (account("ada"), account("eve"));
    let here: Vec<ConnectionPermit> =
        (1..=3).map(|last| places.enter(address(last), false).unwrap()).collect();
    assert_eq!(here[0].belongs_to(&ada), Ok(()));
    assert_eq!(here[0].belongs_to(&ada), Ok(()), "counted once");
    assert_eq!(here[1].belongs_to(&ada), Ok(()));
    assert_eq!(here[2].belongs_to(&ada), Err(Full::Account));
    assert_eq!(here[1].belongs_to(&eve), Ok(()), "a proxy asks for one after the other");
    assert_eq!(here[2].belongs_to(&ada), Ok(()));

    let streams = [places.stream(&ada).unwrap(), places.stream(&ada).unwrap()];
    assert_eq!(places.stream(&ada).unwrap_err(), Full::StreamsOfAccount);
    let of_eve = places.stream(&eve).unwrap();
    assert_eq!(places.stream(&eve).unwrap_err(), Full::Streams);
    drop((streams, of_eve));
    assert!(places.stream(&ada).is_ok());
}

proptest! {
    /// Whatever comes, goes, asks and rests: the bounds hold, and once all have gone nothing is left behind.
    #[test]
    fn the_bounds_hold_and_nothing_is_left_behind(steps in prop::collection::vec((0..6u8, 0..4u8, 0..8usize), 0..200)) {
        let places = ConnectionLimits::new(SMALL);
        let accounts = [account("ada"), account("eve"), account("mia")];
        let (mut here, mut streams) = (Vec::new(), Vec::new());
        for (what, who, which) in steps {
            let place: Option<&ConnectionPermit> = here.get(which % here.len().max(1));
            let name = &accounts[usize::from(who) % accounts.len()];
            match what {
                0 => here.extend(places.enter(address(who), false).ok()),
                1 if !here.is_empty() => drop(here.swap_remove(which % here.len())),
                2 => drop(place.map(ConnectionPermit::wake)),
                3 => place.iter().for_each(|place| place.rest()),
                4 => drop(place.map(|place| place.belongs_to(name))),
                5 if which == 0 => drop(streams.pop()),
                _ => streams.extend(places.stream(name).ok()),
            }
            let state = places.state();
            prop_assert!(state.guests.len() <= SMALL.connections);
            prop_assert!(state.addresses.values().all(|here| here.connections <= SMALL.per_address));
            prop_assert!(state.accounts.values().all(|own| *own <= SMALL.per_account));
            prop_assert!(state.streams <= SMALL.streams);
            prop_assert_eq!(state.idle.len(), state.guests.values().filter(|guest| guest.idle.is_some()).count());
            prop_assert_eq!(
                state.guests.len(),
                state.addresses.values().map(|here| here.connections).sum::<usize>()
            );
        }
        drop((here, streams));
        let state = places.state();
        prop_assert!(state.guests.is_empty() && state.idle.is_empty() && state.addresses.is_empty());
        prop_assert!(state.accounts.is_empty() && state.streams == 0 && state.streams_of.is_empty());
    }
}
