//! Numbers in addresses that have a least and a most: what is outside is refused, and not quietly something else.

use serde::de::{Deserialize as _, Deserializer, Error as _};

pub(crate) fn within<'de, D: Deserializer<'de>, const LEAST: u32, const MOST: u32>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    let number = Option::<u32>::deserialize(deserializer)?;
    match number {
        Some(number) if !(LEAST..=MOST).contains(&number) => {
            Err(D::Error::custom(format!("must be {LEAST} to {MOST}, not {number}")))
        }
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use crate::api::JobQuery;

    #[test]
    fn what_is_outside_is_refused() {
        let read = |limit: u64| serde_json::from_value::<JobQuery>(serde_json::json!({ "limit": limit }));
        for good in [1, 1000] {
            assert!(read(good).is_ok(), "{good}");
        }
        for bad in [0, 1001, 1 << 31, 1 << 32] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(read(0).unwrap_err().to_string(), "must be 1 to 1000, not 0");
        assert_eq!(serde_json::from_str::<JobQuery>("{}").unwrap().limit, None);
    }
}
