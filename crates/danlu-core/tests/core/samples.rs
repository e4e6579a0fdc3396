//! What workers use, and whether they hang.

use std::time::Duration;

use danlu_core::sample::{Counters, DeviceUse, HangWatch, is_busy, sample};
use jiff::Timestamp;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_sample_is_what_happened_between_two_looks() {
    let before = Counters {
        processor: Some(SECOND),
        memory: Some(5),
        read: Some(100),
        received: Some(9),
        ..Counters::default()
    };
    let now = Counters {
        processor: Some(SECOND * 11),
        memory: Some(7),
        read: Some(1100),
        received: Some(4),
        written: Some(3),
        sent: None,
    };
    let devices =
        [(3, DeviceUse { percent: Some(97), memory: Some(1 << 30), watts: Some(310), celsius: Some(61) })]
            .into();
    let sample = sample(&before, &now, SECOND * 5, Timestamp::UNIX_EPOCH, devices);
    insta::assert_snapshot!(serde_json::to_string(&sample).unwrap(), @r#"{"at":"1970-01-01T00:00:00Z","cores":2.0,"memory":7,"read":200,"received":0,"devices":{"3":{"percent":97,"memory":1073741824,"watts":310,"celsius":61}}}"#);
    assert_eq!((is_busy(&sample, true), is_busy(&sample, false)), (Some(true), Some(true)));
}

#[test]
fn devices_decide_where_there_are_any() {
    let mut seen =
        sample(&Counters::default(), &Counters::default(), SECOND, Timestamp::UNIX_EPOCH, [].into());
    assert_eq!((is_busy(&seen, true), is_busy(&seen, false)), (None, None), "nobody knows");
    seen.cores = Some(1.0);
    seen.devices.insert(0, DeviceUse { percent: Some(0), ..DeviceUse::default() });
    assert_eq!(is_busy(&seen, true), Some(false), "it only waits, with a busy processor");
}

#[test]
fn silence_alone_is_no_hang_and_neither_is_idleness() {
    let mut watch = HangWatch::new(SECOND * 30);
    let (loud, silent) = (SECOND, SECOND * 100);
    for _ in 0..10 {
        assert!(!watch.on_sample(SECOND * 10, loud, Some(false)));
    }
    for _ in 0..10 {
        assert!(!watch.on_sample(SECOND * 10, silent, Some(true)));
    }
    assert!(!watch.on_sample(SECOND * 10, silent, Some(false)));
    assert!(!watch.on_sample(SECOND * 10, silent, Some(false)));
    for _ in 0..10 {
        assert!(!watch.on_sample(SECOND * 10, silent, None), "nobody knows what its devices do");
    }
    assert!(watch.on_sample(SECOND * 10, silent, Some(false)), "idle for as long as it may be, by then");
    assert!(!watch.on_sample(SECOND * 10, silent, Some(false)), "said once");
    assert!(!watch.on_sample(SECOND * 10, loud, Some(false)));
    assert!(watch.on_sample(SECOND * 10, silent, Some(false)), "it spoke, and hangs again");
}
