//! Reading of fields that people write in more than one way.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use super::RanksPerWorker;

/// A name and a value for the program's command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Parameter {
    pub name: String,
    pub value: String,
}

/// A text, number or truth value, kept as text: `GLOG_v: 3` means `"3"`.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyScalar;
        impl Visitor<'_> for AnyScalar {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number or true/false")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Scalar, E> {
                Ok(Scalar(String::new()))
            }
        }
        deserializer.deserialize_any(AnyScalar)
    }
}

pub(super) fn text_map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let map = BTreeMap::<String, Scalar>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(name, value)| (name, value.0)).collect())
}

pub(super) fn parameters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Parameter>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Listed {
        #[serde(alias = "label")]
        name: String,
        value: Scalar,
    }

    struct MapOrList;
    impl<'de> Visitor<'de> for MapOrList {
        type Value = Vec<Parameter>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of names to values, or a list of {name, value}")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut parameters = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, Scalar>()? {
                parameters.push(Parameter { name, value: value.0 });
            }
            Ok(parameters)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut parameters = Vec::new();
            while let Some(Listed { name, value }) = list.next_element()? {
                parameters.push(Parameter { name, value: value.0 });
            }
            Ok(parameters)
        }
    }
    deserializer.deserialize_any(MapOrList)
}

impl Serialize for RanksPerWorker {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RanksPerWorker::PerDevice => serializer.serialize_str("per_device"),
            RanksPerWorker::PerWorker => serializer.serialize_str("per_worker"),
            RanksPerWorker::Count(count) => serializer.serialize_u32(*count),
        }
    }
}

impl<'de> Deserialize<'de> for RanksPerWorker {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const ACCEPTED: &str = "`per_device`, `per_worker` or a whole number";
        struct WordOrNumber;
        impl Visitor<'_> for WordOrNumber {
            type Value = RanksPerWorker;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(ACCEPTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<RanksPerWorker, E> {
                match text {
                    "per_device" => Ok(RanksPerWorker::PerDevice),
                    "per_worker" => Ok(RanksPerWorker::PerWorker),
                    _ => text.parse().map(RanksPerWorker::Count).map_err(|_| {
                        let shown: String = text.chars().take(40).collect();
                        E::custom(format!("`{shown}` is not {ACCEPTED}"))
                    }),
                }
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<RanksPerWorker, E> {
                u32::try_from(number)
                    .map(RanksPerWorker::Count)
                    .map_err(|_| E::custom(format!("{number} is too many ranks")))
            }
        }
        deserializer.deserialize_any(WordOrNumber)
    }
}

impl utoipa::PartialSchema for RanksPerWorker {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{OneOfBuilder, Type};
        use utoipa::openapi::{ObjectBuilder, Schema};
        let words = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(["per_device", "per_worker"]))
            .build();
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
        OneOfBuilder::new().item(Schema::Object(words)).item(Schema::Object(number)).into()
    }
}

impl ToSchema for RanksPerWorker {}
