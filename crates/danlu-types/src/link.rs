//! Addresses of pages that carry a secret: to sign in, to set a password.
//!
//! The secret stands behind the `#`. Browsers keep that part to themselves, so it is in no log of a server or a proxy.

use crate::account::AccountName;

/// The page on which the holder of `secret` signs in, once.
pub fn sign_in_page(server: &str, secret: &str) -> String {
    format!("{server}/sign-in#link={secret}")
}

/// The page on which the owner of `account` sets a password, once.
pub fn password_page(server: &str, account: &AccountName, secret: &str) -> String {
    format!("{server}/set-password#account={account}&link={secret}")
}

/// What a link says: the address of a page, or its secret alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub server: Option<String>,
    pub account: Option<AccountName>,
    pub secret: String,
}

impl Link {
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        let Some((page, said)) = text.split_once('#') else {
            return Link { server: None, account: None, secret: text.to_owned() };
        };
        let value = |name: &str| {
            let pairs = said.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(own, _)| *own == name).map(|(_, value)| value.to_owned()).next()
        };
        Link {
            server: page.rsplit_once('/').map(|(server, _)| server.to_owned()),
            account: value("account").and_then(|name| name.parse().ok()),
            secret: value("link").unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_as_they_are_written() {
        let ada: AccountName = "ada".parse().unwrap();
        let page = password_page("https://lab.example:8765", &ada, "danlu_5ec");
        assert_eq!(page, "https://lab.example:8765/set-password#account=ada&link=danlu_5ec");
        let server = Some("https://lab.example:8765".to_owned());
        let link = Link { server: server.clone(), account: Some(ada), secret: "danlu_5ec".to_owned() };
        assert_eq!(Link::read(&page), link);
        let page = sign_in_page("https://lab.example:8765", "danlu_5ec");
        assert_eq!(Link::read(&page), Link { server, account: None, secret: "danlu_5ec".to_owned() });
        let alone = Link { server: None, account: None, secret: "danlu_5ec".to_owned() };
        assert_eq!(Link::read(" danlu_5ec\n"), alone);
    }
}
