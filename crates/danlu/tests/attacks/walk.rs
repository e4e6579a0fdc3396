//! All operations of the API, for attacks that must fail on each of them.

use serde_json::Value;

use crate::site::{Site, value};

pub(crate) struct Operation {
    pub(crate) method: String,
    /// With its parameters in braces.
    pub(crate) path: String,
    pub(crate) takes_body: bool,
}

impl Operation {
    /// The path with values that could be right.
    pub(crate) fn plausible(&self) -> String {
        let numbers = ["{id}", "{worker}", "{index}"]
            .iter()
            .fold(self.path.clone(), |path, name| path.replace(name, "1"));
        Operation { path: numbers, method: self.method.clone(), takes_body: self.takes_body }.filled("ada")
    }

    /// The path with one value for every parameter.
    pub(crate) fn filled(&self, with: &str) -> String {
        let mut filled = String::new();
        for part in self.path.split_inclusive(['{', '}']) {
            match part.strip_suffix('}') {
                Some(_) => filled.push_str(with),
                None => filled.push_str(part.trim_end_matches('{')),
            }
        }
        filled
    }

    pub(crate) fn has_parameters(&self) -> bool {
        self.path.contains('{')
    }
}

pub(crate) async fn operations(site: &Site) -> Vec<Operation> {
    let document = value(&site.ask("admin", "GET", "/openapi.json", &Value::Null).await);
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().iter().map(|(method, operation)| Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                takes_body: operation.get("requestBody").is_some(),
            })
        })
        .collect()
}
