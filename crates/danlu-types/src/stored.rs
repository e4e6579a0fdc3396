//! Reading of JSON that an older version stored.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Sizes below a mebibyte were once written without a unit (`"memory": "64"`), as which nobody may give them any more.
/// What holds them stays readable: the digits are bytes.
pub fn from_stored_json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        let mut value: Value = serde_json::from_str(text)?;
        if name_bytes(&mut value) { serde_json::from_value(value) } else { Err(error) }
    })
}

/// Whether anything had to be changed.
fn name_bytes(value: &mut Value) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match value {
        Value::Array(items) => items.iter_mut().fold(false, |changed, item| name_bytes(item) | changed),
        Value::Object(fields) => fields.iter_mut().fold(false, |changed, (name, value)| match value {
            Value::String(text) if matches!(name.as_str(), "memory" | "shared_memory") && digits(text) => {
                text.push('B');
                true
            }
            value => name_bytes(value) | changed,
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::from_stored_json;
    use crate::{Bytes, JobSpec};

    #[test]
    fn jobs_with_sizes_that_have_no_unit_stay_readable() {
        let old = r#"{"name":"tiny","command":"true","memory":"64","shared_memory":"1Gi"}"#;
        let spec: JobSpec = from_stored_json(old).unwrap();
        assert_eq!((spec.memory, spec.shared_memory), (Some(Bytes(64)), Some(Bytes(1 << 30))));
        assert!(from_stored_json::<JobSpec>(r#"{"command":"true","memory":"lots"}"#).is_err());
    }
}
