//! Public keys of SSH, as people paste them: one line of an `id_ed25519.pub`.
//!
//! Only what a person's key is is taken: no options before it, which would be commands of ours to run, no certificates, and
//! nothing that can be broken today (DSA, short RSA).

use data_encoding::{BASE64, BASE64_NOPAD};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

const LEAST_RSA_BITS: usize = 2048;
const MOST_RSA_BITS: usize = 16384;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshKey {
    pub algorithm: &'static str,
    bytes: Vec<u8>,
    pub comment: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SshKeyError {
    #[error("invalid public key: expected one line such as `ssh-ed25519 AAAA… name@host`")]
    Form,
    #[error("this is a private key: keep it to yourself, and paste the one from the `.pub` file")]
    Private,
    #[error("unsupported key type `{0}`: use `ssh-ed25519`, `ecdsa-sha2-nistp256` or RSA")]
    Algorithm(String),
    #[error("the key is cut off or damaged")]
    Damaged,
    #[error("an RSA key of {0} bits is too easy to break: {LEAST_RSA_BITS} are the least")]
    TooShort(usize),
}

/// The kinds of keys, and how long each of their fields is; `None` where it varies.
const ALGORITHMS: [(&str, &[Option<usize>]); 7] = [
    ("ssh-ed25519", &[Some(32)]),
    ("ecdsa-sha2-nistp256", &[Some(8), Some(65)]),
    ("ecdsa-sha2-nistp384", &[Some(8), Some(97)]),
    ("ecdsa-sha2-nistp521", &[Some(8), Some(133)]),
    ("ssh-rsa", &[None, None]),
    ("sk-ssh-ed25519@openssh.com", &[Some(32), None]),
    ("sk-ecdsa-sha2-nistp256@openssh.com", &[Some(8), Some(65), None]),
];

impl SshKey {
    pub fn read(text: &str) -> Result<Self, SshKeyError> {
        let text = text.trim();
        if text.starts_with("-----BEGIN") && text.contains("PRIVATE KEY") {
            return Err(SshKeyError::Private);
        }
        if text.contains(char::is_control) {
            return Err(SshKeyError::Form);
        }
        let (algorithm, rest) = text.split_once(' ').ok_or(SshKeyError::Form)?;
        let (encoded, comment) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        let known = ALGORITHMS.iter().find(|(name, _)| *name == algorithm);
        let (algorithm, fields) =
            *known.ok_or_else(|| SshKeyError::Algorithm(algorithm.chars().take(40).collect()))?;
        let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| SshKeyError::Damaged)?;
        let mut left = bytes.as_slice();
        // The name stands inside as well; another one there is another key.
        if field(&mut left) != Some(algorithm.as_bytes()) {
            return Err(SshKeyError::Damaged);
        }
        let mut last: &[u8] = &[];
        for length in fields {
            last = field(&mut left).ok_or(SshKeyError::Damaged)?;
            if length.is_some_and(|length| length != last.len()) {
                return Err(SshKeyError::Damaged);
            }
        }
        if !left.is_empty() {
            return Err(SshKeyError::Damaged);
        }
        if algorithm == "ssh-rsa" {
            let bits = bits(last);
            if !(LEAST_RSA_BITS..=MOST_RSA_BITS).contains(&bits) {
                return Err(SshKeyError::TooShort(bits));
            }
        }
        Ok(SshKey { algorithm, bytes, comment: comment.trim().to_owned() })
    }

    /// As `ssh-keygen -l` shows it.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", BASE64_NOPAD.encode(&Sha256::digest(&self.bytes)))
    }

    /// The key without its comment, as one line.
    pub fn line(&self) -> String {
        format!("{} {}", self.algorithm, BASE64.encode(&self.bytes))
    }
}

/// The next length-prefixed field (RFC 4251).
fn field<'a>(left: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = left.split_first_chunk::<4>()?;
    let (field, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *left = rest;
    Some(field)
}

fn bits(number: &[u8]) -> usize {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(number.len());
    let number = &number[start..];
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    // Made with `ssh-keygen -t ed25519` and shown with `ssh-keygen -l`.
    const ED25519: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEPed4YweQ0TXpuSvr6zxQ1va0gb6sJLCMhtr2WVtEgc ada@lab";
    const ED25519_FINGERPRINT: &str = "SHA256:Nd3isVTLNtezgh1XSdHgBLPRBkgehCHQ74uDAOc3KjI";
    const RSA_1024: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDB9p7vNNEJqV7ZVge53J/E8WoiVvz977iBu1RvYJhzwDUkhrQT43zzvI1+pqk/fGlZ0TUTje31rirh7Qz30AGdDkEEDnoe3hMsIck1Zu4ogejTh7Nq2fO9nfhxVvl1rzyo6YZUCg5Z8UNIPlaY/dmfADH/yc2JoeIu/RStUEfYDQ== ada@lab";
    const RSA_3072: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQDIE1x8ko6qBJL9u6RdrtglXCGsbfy7dtllJt3DEb+0kM01CRSsNb9pKOXyWKx4ISbHUY8wneufEWrmVdSOfG2mvUXPFdwa66RUOHZhBf58ckBM1uWItXRZg7XKa9ctuQ0EpA3mULloh/glfIgL08oXs+Sw9vUo7ZmLsgwOIXpIVaUjcGmDbFVSnDoOM2RBwxX9xDhqE3nGVtyzCj721YRfamNYHINiuwLvA2kZ9r4xEH7DpWxGtypryLGWLfP0DJk6msmP5dMQu915XTE1pIeE/YNLrbE9MVoJ4yNvk7PNUVYGr0Se9SX5mW+wJywZqILyLA9vbrr5kRJS0Q9C1/Jl5bDjMb4lYoCP8K306FRb0eL2lTI8jUQftT+2UKAgmYv4/ig8MtGBJCfy9yiKnvvvlA4SvIGMy0RHRM7CE7G9nJeORT+uh7Q8XCMSIxsXmmyK8L5y4HnA7qnavrA9oNnp5GN8oKzy/HyltmQTJzKq1dPdZ2UKSsLjKTVPHgxJI0k= ada@lab";
    const RSA_3072_FINGERPRINT: &str = "SHA256:tDJUWQ6I+xcDbUfcIHffE9aJ8O0C/EuBblIwdmDQvVc";
    const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHqYLTiE6iLSoX9rm/tJ6P7ULb1B1/fwqPIHpHFRWPAruk5gp/A1fsAye4d4+a9JIHxzHXxBqJxfkf9yiZATjqI= ada@lab";
    const ECDSA_FINGERPRINT: &str = "SHA256:R1uJ33U4S7nDwzhA4U/KnVeS/5Fvas9ZI8BYMJtHZxQ";

    /// What is taken reads back as the same key, and its line cannot hold anything that is not a key.
    fn taken_or_refused(text: &str) {
        if let Ok(key) = SshKey::read(text) {
            let line = key.line();
            assert!(!line.contains(char::is_control) && line.split(' ').count() == 2, "{line:?}");
            assert!(!key.comment.contains(char::is_control), "{:?}", key.comment);
            let again = SshKey::read(&line).unwrap();
            assert_eq!((again.line(), again.fingerprint()), (line, key.fingerprint()));
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256|command=\"a\")? ?[A-Za-z0-9+/=]{0,80} ?.{0,40}|.{0,200}") {
            taken_or_refused(&text);
        }

        #[test]
        fn nor_is_a_key_that_is_damaged(
            which in 0..4usize, from in any::<Index>(), to in any::<Index>(), with in "[A-Za-z0-9+/= \n\r\u{0}-]{0,6}",
        ) {
            let text = [ED25519, RSA_1024, RSA_3072, ECDSA][which];
            let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
            taken_or_refused(&format!("{}{with}{}", &text[..from], &text[to..]));
        }

        /// Fields of any lengths, those that their prefixes claim and others.
        #[test]
        fn nor_are_fields_of_any_length(
            which in 0..ALGORITHMS.len(), fields in prop::collection::vec((0..140usize, 0..3u32, any::<u32>()), 0..5),
        ) {
            let name = ALGORITHMS[which].0;
            let mut bytes = [&u32::try_from(name.len()).unwrap().to_be_bytes(), name.as_bytes()].concat();
            for (length, lies, claimed) in fields {
                let claimed = if lies == 0 { claimed } else { u32::try_from(length).unwrap() };
                bytes.extend(claimed.to_be_bytes());
                bytes.extend(std::iter::repeat_n(0x41, length));
            }
            taken_or_refused(&format!("{name} {}", BASE64.encode(&bytes)));
        }
    }

    #[test]
    fn keys_have_the_fingerprints_that_ssh_keygen_shows() {
        for (text, fingerprint) in
            [(ED25519, ED25519_FINGERPRINT), (RSA_3072, RSA_3072_FINGERPRINT), (ECDSA, ECDSA_FINGERPRINT)]
        {
            let key = SshKey::read(text).unwrap();
            assert_eq!(key.fingerprint(), fingerprint);
            assert_eq!(key.comment, "ada@lab");
            assert_eq!(SshKey::read(&key.line()).unwrap().fingerprint(), fingerprint);
        }
    }

    #[test]
    fn what_is_no_key_is_refused_with_a_reason() {
        let encoded = ED25519.split(' ').nth(1).unwrap();
        let cases = [
            String::new(),
            "hello".to_owned(),
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc".to_owned(),
            format!("command=\"sh\" {ED25519}"),
            format!("ssh-dss {encoded}"),
            format!("ssh-rsa {encoded}"),
            format!("ssh-ed25519 {}", &encoded[..40]),
            format!("ssh-ed25519 {encoded}AAAA"),
            format!("{ED25519}\n{ED25519}"),
            RSA_1024.to_owned(),
        ];
        let answers: Vec<String> =
            cases.iter().map(|text| SshKey::read(text).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(answers.join("\n"), @r#"
        invalid public key: expected one line such as `ssh-ed25519 AAAA… name@host`
        invalid public key: expected one line such as `ssh-ed25519 AAAA… name@host`
        this is a private key: keep it to yourself, and paste the one from the `.pub` file
        unsupported key type `command="sh"`: use `ssh-ed25519`, `ecdsa-sha2-nistp256` or RSA
        unsupported key type `ssh-dss`: use `ssh-ed25519`, `ecdsa-sha2-nistp256` or RSA
        the key is cut off or damaged
        the key is cut off or damaged
        the key is cut off or damaged
        invalid public key: expected one line such as `ssh-ed25519 AAAA… name@host`
        an RSA key of 1024 bits is too easy to break: 2048 are the least
        "#);
    }
}
