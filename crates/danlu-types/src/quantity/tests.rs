//! Amounts as people write them, and as they are shown.

use proptest::prelude::*;

use super::*;

#[test]
fn amounts_read_as_people_write_them() {
    assert_eq!("256Gi".parse(), Ok(Bytes(256 << 30)));
    assert_eq!("1.5Gi".parse(), Ok(Bytes(3 << 29)));
    assert_eq!("64GiB".parse(), Ok(Bytes(64 << 30)));
    assert_eq!("2G".parse(), Ok(Bytes(2_000_000_000)));
    assert_eq!("500kB".parse(), Ok(Bytes(500_000)));
    assert_eq!("100B".parse(), Ok(Bytes(100)));
    assert_eq!("0.5".parse(), Ok(Cpus { milli: 500 }));
    assert_eq!("500m".parse(), Ok(Cpus { milli: 500 }));
    assert_eq!("96".parse(), Ok(Cpus::whole(96)));
    assert_eq!("1d12h".parse(), Ok(Span::from_seconds(36 * 3600)));
    assert_eq!("250ms".parse(), Ok(Span { milliseconds: 250 }));
}

#[test]
fn what_cannot_be_read_says_what_can() {
    let bytes = ["", "Gi", "-1Gi", "1e9", "12 parsecs", "99999999999999999999Gi", "2Ei", "1.Gi", "0x10"];
    for text in bytes {
        assert!(text.parse::<Bytes>().is_err(), "{text}");
    }
    for text in ["", "m", "-1", "NaN", "inf", "1e30", "9999999999"] {
        assert!(text.parse::<Cpus>().is_err(), "{text}");
    }
    for text in ["", "h", "24 hours", "-5s", "1h-", "99999999999999d"] {
        assert!(text.parse::<Span>().is_err(), "{text}");
    }
    let error = "lots".parse::<Bytes>().unwrap_err().to_string();
    insta::assert_snapshot!(error, @"`lots` is not an amount of memory; write an amount with a unit, such as `512Mi`, `64Gi` or `1.5Gi`");
}

#[test]
fn sizes_and_times_without_a_unit_are_refused_with_one() {
    let told = |error: Option<ParseQuantityError>| error.unwrap().to_string();
    let memory = told("64".parse::<Bytes>().err());
    insta::assert_snapshot!(memory, @"`64` has no unit; write `64Gi` or `64Mi`");
    let time = told("24".parse::<Span>().err());
    insta::assert_snapshot!(time, @"`24` has no unit; write `24h` or `24m` or `24s`");
    let number = serde_json::from_str::<Bytes>("1.5").unwrap_err().to_string();
    insta::assert_snapshot!(number, @"`1.5` has no unit; write `1.5Gi` or `1.5Mi` at line 1 column 3");
    assert!("68719476736".parse::<Bytes>().is_err());
    assert_eq!(serde_json::from_str::<Bytes>("\"1000000000\"").unwrap(), Bytes(1_000_000_000), "as stored");
    for text in ["65536", "68719476736", "\"64\"", "\"65536\""] {
        assert!(serde_json::from_str::<Bytes>(text).is_err(), "{text}");
        assert!(serde_json::from_str::<Span>(text).is_err(), "{text}");
    }
    assert_eq!(serde_json::from_str::<Bytes>("0").unwrap(), Bytes(0));
    assert_eq!(serde_json::from_str::<Span>("0").unwrap(), Span::default());
}

#[test]
fn sizes_are_shown_in_the_unit_that_suits_them() {
    for (bytes, shown) in [
        (64 << 30, "64Gi"),
        (64_000_000_000, "64GB"),
        (1_000_000_000, "1GB"),
        (3 << 29, "1536Mi"),
        (1_500_000_000, "1500MB"),
        (64, "64B"),
        (0, "0"),
    ] {
        assert_eq!(Bytes(bytes).to_string(), shown);
    }
}

proptest! {
    #[test]
    fn every_quantity_reads_what_it_writes(number in 0u64..=LONGEST_MILLISECONDS) {
        prop_assert_eq!(Bytes(number).to_string().parse(), Ok(Bytes(number)));
        prop_assert_eq!(Span { milliseconds: number }.to_string().parse(), Ok(Span { milliseconds: number }));
        let milli = number % MOST_MILLI_CPUS;
        prop_assert_eq!(Cpus { milli }.to_string().parse(), Ok(Cpus { milli }));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,40}") {
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Cpus>();
        let _ = text.parse::<Span>();
    }
}
