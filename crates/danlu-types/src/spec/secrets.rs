//! Secrets that a job asks for, by name: their values are in no specification.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A secret of the job's workspace, for one variable. A plain name gives the variable the secret's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SecretUse {
    pub name: String,
    #[serde(rename = "as", default, skip_serializing_if = "SecretForm::is_env")]
    pub form: SecretForm,
}

/// How programs get a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretForm {
    /// The variable holds the value.
    #[default]
    Env,
    /// The variable holds the path of a file, which holds the value and is gone when the attempt ends.
    File,
}

impl SecretForm {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
    fn is_env(&self) -> bool {
        *self == SecretForm::Env
    }
}

impl<'de> Deserialize<'de> for SecretUse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Full {
            name: String,
            #[serde(rename = "as", default)]
            form: SecretForm,
        }
        struct NameOrMap;
        impl<'de> Visitor<'de> for NameOrMap {
            type Value = SecretUse;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a secret, or {name, as: file}")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<SecretUse, E> {
                Ok(SecretUse { name: name.to_owned(), form: SecretForm::Env })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SecretUse, A::Error> {
                let Full { name, form } = Full::deserialize(MapAccessDeserializer::new(map))?;
                Ok(SecretUse { name, form })
            }
        }
        deserializer.deserialize_any(NameOrMap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_enough() {
        let read = |text: &str| serde_json::from_str::<SecretUse>(text);
        let plain = read("\"hf-token\"").unwrap();
        assert_eq!(plain, SecretUse { name: "hf-token".to_owned(), form: SecretForm::Env });
        assert_eq!(read(r#"{"name": "hf-token"}"#).unwrap(), plain);
        let file = read(r#"{"name": "kube", "as": "file"}"#).unwrap();
        assert_eq!(file.form, SecretForm::File);
        assert_eq!(read(&serde_json::to_string(&file).unwrap()).unwrap(), file);
        for bad in
            ["7", r#"{"as": "file"}"#, r#"{"name": "kube", "as": "pipe"}"#, r#"{"name": "x", "value": "y"}"#]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
