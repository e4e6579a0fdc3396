//! The console's pages, at every address that is not the API's.

use axum::body::Body;
use axum::http::header::{ACCEPT, ACCEPT_ENCODING, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use danlu_console::StaticRequest;

/// Axum leaves a body away where only the head is asked for.
pub(super) async fn answer(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_read = matches!(method, Method::GET | Method::HEAD);
    let is_api = uri.path() == "/api" || uri.path().starts_with("/api/");
    // Whoever asks for no page in so many words is a program, and is better served with an error than with HTML.
    let asks_for_page = uri.path() == "/" || text(ACCEPT).is_some_and(|accept| accept.contains("text/html"));
    let question = StaticRequest {
        path: uri.path(),
        wants_page: asks_for_page,
        accepts_gzip: text(ACCEPT_ENCODING).is_some_and(|encodings| encodings.contains("gzip")),
        has: text(IF_NONE_MATCH),
    };
    match danlu_console::answer(question).filter(|_| is_read && !is_api) {
        None => super::no_such_address(uri).await.into_response(),
        Some(answer) => {
            let mut response = Response::new(Body::from(answer.body));
            *response.status_mut() =
                StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            for (name, value) in answer.headers {
                if let Ok(value) = HeaderValue::from_str(&value) {
                    response.headers_mut().insert(HeaderName::from_static(name), value);
                }
            }
            response
        }
    }
}
