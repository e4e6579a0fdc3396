//! The console's files: which one answers a path, and with which headers.
//!
//! A release holds the files of `web/dist`; other builds read them from disk at each request, so that a page can be
//! changed under a running server. Without them everything still builds, and `/` says how to make them. Nothing here
//! knows HTTP's libraries: values in, values out.

use std::borrow::Cow;

use rust_embed::{Embed, EmbeddedFile};

#[derive(Embed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

/// What a browser may do with a page of ours: load from this server, and nothing else. Styles are inline because the
/// component library writes them at run time; scripts never are.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Vite puts the content's hash into the names below this, so they never change.
const HASHED: &str = "assets/";
const INDEX: &str = "index.html";
/// Written beside what is worth compressing, by `web/scripts/compress.mjs`.
const COMPRESSED: &str = ".gz";

/// What is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct StaticRequest<'a> {
    pub path: &'a str,
    /// Whether a page would do where there is no file of that name: the console finds its own way from there.
    pub wants_page: bool,
    pub accepts_gzip: bool,
    /// The `ETag`s that the asker has.
    pub has: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticResponse {
    pub status: u16,
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    pub body: Cow<'static, [u8]>,
}

/// The answer, or `None` where nothing of the console is there.
pub fn answer(question: StaticRequest<'_>) -> Option<StaticResponse> {
    answer_from(question, Files::get)
}

fn answer_from(
    question: StaticRequest<'_>,
    find: impl Fn(&str) -> Option<EmbeddedFile>,
) -> Option<StaticResponse> {
    let path = question.path.trim_start_matches('/');
    let is_asset = path.starts_with(HASHED);
    let name = match find(path) {
        Some(_) if !path.is_empty() && !path.ends_with(COMPRESSED) => path,
        _ if question.wants_page && !is_asset => INDEX,
        _ => return None,
    };
    let Some(plain) = find(name) else { return Some(not_built()) };
    let compressed = find(&format!("{name}{COMPRESSED}"));
    let varies = compressed.is_some();
    let compressed = compressed.filter(|_| question.accepts_gzip);
    let is_compressed = compressed.is_some();
    let etag = etag(&plain, is_compressed);
    let mut headers: Vec<(&'static str, Cow<'static, str>)> = vec![
        ("content-type", content_type(name).into()),
        ("cache-control", if is_asset { "public, max-age=31536000, immutable" } else { "no-cache" }.into()),
        ("x-content-type-options", "nosniff".into()),
        ("referrer-policy", "no-referrer".into()),
        ("content-security-policy", CONTENT_SECURITY_POLICY.into()),
        ("cross-origin-opener-policy", "same-origin".into()),
    ];
    if varies {
        headers.push(("vary", "accept-encoding".into()));
    }
    let is_known = question.has.is_some_and(|has| has.split(',').any(|one| one.trim() == etag));
    headers.push(("etag", etag.into()));
    if is_known {
        return Some(StaticResponse { status: 304, headers, body: Cow::Borrowed(&[]) });
    }
    if is_compressed {
        headers.push(("content-encoding", "gzip".into()));
    }
    Some(StaticResponse { status: 200, headers, body: compressed.unwrap_or(plain).data })
}

fn not_built() -> StaticResponse {
    let text = concat!(
        "Danlu ",
        env!("CARGO_PKG_VERSION"),
        " is running, but was built without its console. `make console` builds that; `danlu` on this machine and the API \
         under /api/v1 work without it.\n"
    );
    let headers = vec![("content-type", "text/plain; charset=utf-8".into())];
    StaticResponse { status: 200, headers, body: Cow::Borrowed(text.as_bytes()) }
}

fn etag(file: &EmbeddedFile, is_compressed: bool) -> String {
    use std::fmt::Write as _;
    let mut text = "\"".to_owned();
    for byte in &file.metadata.sha256_hash()[..12] {
        let _ = write!(text, "{byte:02x}");
    }
    text + if is_compressed { "-gz\"" } else { "\"" }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn file(text: &'static str) -> EmbeddedFile {
        let mut hash = [0; 32];
        hash[0] = text.len().try_into().unwrap();
        let metadata = rust_embed::Metadata::__rust_embed_new(hash, None, None);
        EmbeddedFile { data: Cow::Borrowed(text.as_bytes()), metadata }
    }

    fn site(path: &str) -> Option<EmbeddedFile> {
        match path {
            "index.html" => Some(file("<page>")),
            "assets/main-1.js" => Some(file("script script script")),
            "assets/main-1.js.gz" => Some(file("pressed")),
            _ => None,
        }
    }

    fn said(path: &str, wants_page: bool, accepts_gzip: bool, has: Option<&str>) -> String {
        let Some(answer) = answer_from(StaticRequest { path, wants_page, accepts_gzip, has }, site) else {
            return "nothing".to_owned();
        };
        let mut text = format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body));
        for name in ["cache-control", "content-encoding", "etag"] {
            for (_, value) in answer.headers.iter().filter(|(header, _)| *header == name) {
                let _ = write!(text, " | {value}");
            }
        }
        text
    }

    #[test]
    fn pages_find_their_own_way_and_files_are_themselves() {
        assert_eq!(said("/", true, true, None), "200 <page> | no-cache | \"060000000000000000000000\"");
        assert_eq!(said("/jobs/7", true, true, None), said("/", true, true, None));
        assert_eq!(said("/jobs/7", false, true, None), "nothing", "a program asked, and gets no page");
        assert_eq!(said("/assets/gone.js", true, true, None), "nothing", "a page is no script");
        assert_eq!(said("/assets/main-1.js.gz", false, true, None), "nothing");
    }

    #[test]
    fn hashed_files_are_kept_for_ever_and_sent_compressed_to_those_who_take_it() {
        let plain = said("/assets/main-1.js", false, false, None);
        assert_eq!(
            plain,
            "200 script script script | public, max-age=31536000, immutable | \"140000000000000000000000\""
        );
        let pressed = said("/assets/main-1.js", false, true, None);
        assert_eq!(
            pressed,
            "200 pressed | public, max-age=31536000, immutable | gzip | \"140000000000000000000000-gz\""
        );
        let known = said("/assets/main-1.js", false, true, Some("\"x\", \"140000000000000000000000-gz\""));
        assert_eq!(known, "304  | public, max-age=31536000, immutable | \"140000000000000000000000-gz\"");
    }

    #[test]
    fn without_its_files_the_page_says_how_to_make_them() {
        let answer =
            answer_from(StaticRequest { path: "/", wants_page: true, ..StaticRequest::default() }, |_| None)
                .unwrap();
        assert!(String::from_utf8_lossy(&answer.body).contains("`make console`"));
    }

    #[test]
    fn scripts_are_never_inline() {
        let scripts =
            CONTENT_SECURITY_POLICY.split(';').find(|part| part.trim().starts_with("script-src")).unwrap();
        assert_eq!(scripts.trim(), "script-src 'self'");
    }
}
