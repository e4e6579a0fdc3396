//! Requests and their answers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use danlu_types::api::{
    CodeView, CordonRequest, DeviceView, DrainView, EventQuery, EventView, Explanation, FileEntry, FileQuery,
    HealthView, JobApproval, JobCounts, JobQuery, JobView, LogLines, LogQuery, MetricPoint, MigrationRequest,
    MigrationView, NodeView, Page, SeriesQuery, StopRequest,
};
use danlu_types::fingerprint::Fingerprint;
use danlu_types::sample::Sample;
use danlu_types::{JobId, JobSpec, Problem, ProblemCode};
use futures::TryStreamExt;
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;

use crate::{ClientError, HintStream, LogFollow, ServerFile, trust};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For requests that are answered in one piece; streams and uploads take as long as they take.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);

/// A connection pool to one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    /// Without a slash at its end. Changes when a server that was found by its data folder comes back elsewhere.
    address: Arc<Mutex<String>>,
    token: String,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    data: Option<PathBuf>,
}

impl Client {
    /// A client of the server at `address`, such as `http://127.0.0.1:8765`.
    pub fn new(address: &str, token: &str) -> Self {
        Self::trusting(address, token, None)
    }

    /// A client of a server that is known by the fingerprint of its certificate.
    pub fn trusting(address: &str, token: &str, fingerprint: Option<Fingerprint>) -> Self {
        let tls = trust::tls(address, fingerprint);
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // The server is on this machine or near; a proxy from the environment would only be in the way.
            .no_proxy()
            .tls_backend_preconfigured(tls.clone())
            .build()
            .expect("a client with its TLS made up has nothing to fail on");
        let address = address.trim_end_matches('/').trim_end_matches("/api/v1").to_owned();
        let address = Arc::new(Mutex::new(address));
        Client { http, address, token: token.to_owned(), tls: Arc::new(tls), data: None }
    }

    pub(crate) fn found_in(mut self, data: PathBuf) -> Self {
        self.data = Some(data);
        self
    }

    pub fn address(&self) -> String {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is this token that it speaks with.
    pub fn uses(&self, token: &str) -> bool {
        self.token == token
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// A restarted server may listen on another port; its data folder says where.
    pub(crate) fn look_again(&self) {
        if let Some(file) = self.data.as_deref().and_then(|data| ServerFile::read(data).ok()) {
            let mut address = self.address.lock().unwrap_or_else(PoisonError::into_inner);
            file.address.trim_end_matches('/').clone_into(&mut address);
        }
    }

    /// Submits a job. With the same `key` twice, the second answer is the first one's job.
    pub async fn job_submit(&self, spec: &JobSpec, key: Option<&str>) -> Result<JobView, ClientError> {
        let mut request = self.request(Method::POST, "/jobs").json(spec);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        self.answer(request).await
    }

    /// Whether the job would start now, and if not, why not. Nothing is kept.
    pub async fn job_dry_run(&self, spec: &JobSpec) -> Result<Explanation, ClientError> {
        self.answer(self.request(Method::POST, "/jobs?dry_run=true").json(spec)).await
    }

    pub async fn jobs_list(&self, query: &JobQuery) -> Result<Page<JobView>, ClientError> {
        self.answer(self.request(Method::GET, "/jobs").query(query)).await
    }

    /// How many jobs there are in each state; the query's `cursor` and `limit` mean nothing here.
    pub async fn jobs_count(&self, query: &JobQuery) -> Result<JobCounts, ClientError> {
        self.answer(self.request(Method::GET, "/jobs/counts").query(query)).await
    }

    pub async fn job_fetch(&self, id: JobId) -> Result<JobView, ClientError> {
        self.get(&format!("/jobs/{id}")).await
    }

    pub async fn job_delete(&self, id: JobId) -> Result<(), ClientError> {
        self.send(self.request(Method::DELETE, &format!("/jobs/{id}")).timeout(ANSWER_TIMEOUT))
            .await
            .map(drop)
    }

    pub async fn job_stop(&self, id: JobId, stop: &StopRequest) -> Result<JobView, ClientError> {
        self.answer(self.request(Method::POST, &format!("/jobs/{id}/stop")).json(stop)).await
    }

    pub async fn job_hold(&self, id: JobId) -> Result<JobView, ClientError> {
        self.answer(self.request(Method::POST, &format!("/jobs/{id}/hold"))).await
    }

    pub async fn job_release(&self, id: JobId) -> Result<JobView, ClientError> {
        self.answer(self.request(Method::POST, &format!("/jobs/{id}/release"))).await
    }

    pub async fn job_approve(&self, id: JobId, seen: &JobApproval) -> Result<JobView, ClientError> {
        self.answer(self.request(Method::POST, &format!("/jobs/{id}/approval")).json(seen)).await
    }

    /// A new job like `id`, with `overrides` (a JSON object) merged into its specification.
    /// Changes a job that waits; `changes` is a JSON merge patch of its spec.
    pub async fn job_change(&self, id: JobId, changes: &serde_json::Value) -> Result<JobView, ClientError> {
        self.answer(self.request(Method::PATCH, &format!("/jobs/{id}")).json(changes)).await
    }

    pub async fn job_clone(&self, id: JobId, overrides: &serde_json::Value) -> Result<JobView, ClientError> {
        self.answer(self.request(Method::POST, &format!("/jobs/{id}/clone")).json(overrides)).await
    }

    pub async fn job_why(&self, id: JobId) -> Result<Explanation, ClientError> {
        self.get(&format!("/jobs/{id}/why")).await
    }

    pub async fn logs_read(&self, id: JobId, query: &LogQuery) -> Result<LogLines, ClientError> {
        self.answer(self.request(Method::GET, &format!("/jobs/{id}/logs")).query(query)).await
    }

    pub async fn metrics_read(
        &self,
        id: JobId,
        query: &SeriesQuery,
    ) -> Result<Page<MetricPoint>, ClientError> {
        self.answer(self.request(Method::GET, &format!("/jobs/{id}/metrics")).query(query)).await
    }

    pub async fn samples_read(&self, id: JobId, query: &SeriesQuery) -> Result<Page<Sample>, ClientError> {
        self.answer(self.request(Method::GET, &format!("/jobs/{id}/samples")).query(query)).await
    }

    pub async fn files_list(&self, id: JobId, query: &FileQuery) -> Result<Page<FileEntry>, ClientError> {
        self.answer(self.request(Method::GET, &format!("/jobs/{id}/files")).query(query)).await
    }

    /// Hands the pieces of a file that a job left to `take`, which may refuse to go on.
    pub async fn file_read<E: From<ClientError>>(
        &self,
        id: JobId,
        query: &FileQuery,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let request = self.request(Method::GET, &format!("/jobs/{id}/files/content")).query(query);
        let mut response = self.send(request).await?;
        while let Some(piece) = response.chunk().await.map_err(|source| self.unreachable(source))? {
            take(&piece)?;
        }
        Ok(())
    }

    /// The job's log as it grows, until the job has ended.
    pub fn logs_follow(&self, id: JobId, query: LogQuery) -> LogFollow {
        LogFollow::new(self.clone(), id, query)
    }

    pub async fn events_list(&self, query: &EventQuery) -> Result<Page<EventView>, ClientError> {
        self.answer(self.request(Method::GET, "/events").query(query)).await
    }

    pub async fn nodes_list(&self) -> Result<Page<NodeView>, ClientError> {
        self.get("/nodes").await
    }

    pub async fn devices_list(&self) -> Result<Page<DeviceView>, ClientError> {
        self.get("/devices").await
    }

    /// Has nothing new start on a node.
    pub async fn node_cordon(&self, node: &str, why: &str) -> Result<NodeView, ClientError> {
        let request = CordonRequest { why: why.to_owned() };
        self.answer(self.request(Method::POST, &format!("/nodes/{}/cordon", segment(node))).json(&request))
            .await
    }

    pub async fn node_uncordon(&self, node: &str) -> Result<NodeView, ClientError> {
        self.answer(self.request(Method::POST, &format!("/nodes/{}/uncordon", segment(node)))).await
    }

    /// Cordons a node and has its preemptible jobs leave it.
    pub async fn node_drain(&self, node: &str, why: &str) -> Result<DrainView, ClientError> {
        let request = CordonRequest { why: why.to_owned() };
        self.answer(self.request(Method::POST, &format!("/nodes/{}/drain", segment(node))).json(&request))
            .await
    }

    /// Gives a device out again that was taken out of service.
    pub async fn device_restore(&self, node: &str, index: u32) -> Result<(), ClientError> {
        let path = format!("/nodes/{}/devices/{index}/restore", segment(node));
        self.send(self.request(Method::POST, &path).timeout(ANSWER_TIMEOUT)).await.map(drop)
    }

    /// What changes, from now on.
    pub fn hints(&self) -> HintStream {
        HintStream::new(self.clone())
    }

    pub async fn health(&self) -> Result<HealthView, ClientError> {
        self.probe("healthz").await
    }

    /// What the server says of itself, ready or not.
    pub async fn readiness_report(&self) -> Result<HealthView, ClientError> {
        let request = self.http.get(format!("{}/readyz", self.address())).timeout(ANSWER_TIMEOUT);
        read_json(request.send().await.map_err(|source| self.unreachable(source))?).await
    }

    pub async fn readiness(&self) -> Result<HealthView, ClientError> {
        self.probe("readyz").await
    }

    pub async fn code_has(&self, digest: &str) -> Result<bool, ClientError> {
        let request = self.request(Method::HEAD, &format!("/code/{digest}")).timeout(ANSWER_TIMEOUT);
        match self.send(request).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Uploads the packed snapshot at `archive`, telling `progress` how many bytes went out in all.
    pub async fn code_put(
        &self,
        digest: &str,
        archive: &Path,
        mut progress: impl FnMut(u64) + Send + Sync + 'static,
    ) -> Result<CodeView, ClientError> {
        let unreadable = |source| ClientError::Upload { path: archive.to_owned(), source };
        let file = tokio::fs::File::open(archive).await.map_err(unreadable)?;
        let size = file.metadata().await.map_err(unreadable)?.len();
        let mut sent = 0;
        let pieces = tokio_util::io::ReaderStream::with_capacity(file, 256 * 1024).inspect_ok(move |piece| {
            sent += piece.len() as u64;
            progress(sent);
        });
        let request = self
            .request(Method::PUT, &format!("/code/{digest}"))
            .header("Content-Type", "application/zstd")
            .header("Content-Length", size)
            .body(Body::wrap_stream(pieces));
        read_json(self.send(request).await?).await
    }

    /// Has uploaded code migrated to Ascend NPU; the answer names the snapshot with the migrated copy.
    pub async fn code_migrate(&self, request: &MigrationRequest) -> Result<MigrationView, ClientError> {
        self.answer(self.request(Method::POST, "/migrations").json(request)).await
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/api/v1{path}", self.address())).bearer_auth(&self.token)
    }

    /// Probes stand outside the API and want no token.
    async fn probe(&self, name: &str) -> Result<HealthView, ClientError> {
        self.answer(self.http.get(format!("{}/{name}", self.address()))).await
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn answer<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, ClientError> {
        read_json(self.send(request.timeout(ANSWER_TIMEOUT)).await?).await
    }

    /// For what is answered with nothing.
    pub(crate) async fn done(&self, request: RequestBuilder) -> Result<(), ClientError> {
        self.send(request.timeout(ANSWER_TIMEOUT)).await.map(drop)
    }

    /// Sends, and turns what is not a success into an error.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (name, status) = (response.url().path().to_owned(), response.status());
        let body = response.bytes().await.map_err(|source| self.unreachable(source))?;
        Err(read_problem(&name, status, &body))
    }

    pub(crate) fn unreachable(
        &self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ClientError {
        ClientError::Unreachable { address: self.address(), source: source.into() }
    }
}

/// A name as one segment of a path, whatever was typed.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~');
    let dotted = |byte: u8| byte == b'.' && name.bytes().any(plain);
    let spell =
        |byte| if plain(byte) || dotted(byte) { char::from(byte).into() } else { format!("%{byte:02X}") };
    name.bytes().map(spell).collect()
}

async fn read_json<T: DeserializeOwned>(response: Response) -> Result<T, ClientError> {
    let name = response.url().path().to_owned();
    let body = response.bytes().await.map_err(|source| ClientError::protocol(&name, source))?;
    serde_json::from_slice(&body).map_err(|source| ClientError::protocol(name, source))
}

/// The problem in `body`; where something else answered (a proxy, an older server), one made from the status.
pub(crate) fn read_problem(request: &str, status: StatusCode, body: &[u8]) -> ClientError {
    if let Ok(problem) = serde_json::from_slice::<Problem>(body) {
        return ClientError::Problem(Box::new(problem));
    }
    let code = match status {
        StatusCode::NOT_FOUND => ProblemCode::NotFound,
        StatusCode::UNAUTHORIZED => ProblemCode::Unauthenticated,
        StatusCode::SERVICE_UNAVAILABLE => ProblemCode::Unavailable,
        _ => {
            return ClientError::protocol(request, format!("it answered {status} without a reason"));
        }
    };
    ClientError::Problem(Box::new(Problem::new(code, format!("{request}: {}", code.title()))))
}
