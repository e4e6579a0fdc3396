//! What sidecars of workers on other machines ask.

use std::time::Duration;

use danlu_types::WorkerIndex;
use danlu_types::api::{
    ClaimRequest, ClaimView, FileSize, NewsQuery, Page, PutQuery, SidecarNews, TreeArea, TreeEntry, TreePut,
    TreeQuery,
};
use reqwest::Method;

use crate::client::segment;
use crate::{Client, ClientError};

/// A piece that takes longer has met a cut cable.
const PIECE_TIMEOUT: Duration = Duration::from_mins(1);

impl Client {
    pub async fn allocation_claim(&self, request: &ClaimRequest) -> Result<bool, ClientError> {
        let view: ClaimView = self.answer(self.request(Method::POST, "/sidecar/claim").json(request)).await?;
        Ok(view.claimed)
    }

    pub async fn allocation_file(&self, allocation: &str, name: &str) -> Result<Vec<u8>, ClientError> {
        self.bytes(&format!("/sidecar/allocations/{}/files/{}", segment(allocation), segment(name))).await
    }

    pub async fn worker_file(&self, worker: WorkerIndex, name: &str) -> Result<Vec<u8>, ClientError> {
        self.bytes(&format!("/sidecar/workers/{worker}/files/{}", segment(name))).await
    }

    /// Sends a file, or what it holds from `offset` on; returns how much of it the server has.
    pub async fn worker_file_put(
        &self,
        worker: WorkerIndex,
        name: &str,
        offset: Option<u64>,
        bytes: Vec<u8>,
    ) -> Result<u64, ClientError> {
        let path = format!("/sidecar/workers/{worker}/files/{}", segment(name));
        let request = self.request(Method::PUT, &path).query(&PutQuery { offset }).body(bytes);
        let view: FileSize = self.answer(request).await?;
        Ok(view.size)
    }

    /// What a worker has to hear, as soon as that is something else than `since`.
    pub async fn worker_news(&self, worker: WorkerIndex, since: &str) -> Result<SidecarNews, ClientError> {
        let query = NewsQuery { since: since.to_owned() };
        self.answer(self.request(Method::GET, &format!("/sidecar/workers/{worker}/news")).query(&query)).await
    }

    /// Hands the pieces of the job's code to `take`.
    pub async fn worker_code<E: From<ClientError>>(
        &self,
        worker: WorkerIndex,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pieces(self.request(Method::GET, &format!("/sidecar/workers/{worker}/code")), take).await
    }

    pub async fn tree_list(
        &self,
        worker: WorkerIndex,
        area: TreeArea,
    ) -> Result<Vec<TreeEntry>, ClientError> {
        let page: Page<TreeEntry> =
            self.get(&format!("/sidecar/workers/{worker}/trees/{}", area.as_str())).await?;
        Ok(page.items)
    }

    /// Hands what a file holds from `query.offset` on to `take`.
    pub async fn tree_read<E: From<ClientError>>(
        &self,
        worker: WorkerIndex,
        area: TreeArea,
        query: &TreeQuery,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pieces(self.request(Method::GET, &tree_content(worker, area)).query(query), take).await
    }

    /// Sends a piece of a file, a link or a folder; returns how much of the file the server has.
    pub async fn tree_put(
        &self,
        worker: WorkerIndex,
        area: TreeArea,
        put: &TreePut,
        bytes: Vec<u8>,
    ) -> Result<u64, ClientError> {
        let request = self.request(Method::PUT, &tree_content(worker, area)).query(put).body(bytes);
        let view: FileSize = self.answer(request).await?;
        Ok(view.size)
    }

    pub async fn tree_remove(
        &self,
        worker: WorkerIndex,
        area: TreeArea,
        path: &str,
    ) -> Result<(), ClientError> {
        let query = TreeQuery { path: path.to_owned(), offset: 0 };
        self.done(self.request(Method::DELETE, &tree_content(worker, area)).query(&query)).await
    }

    async fn bytes(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        let response = self.send(self.request(Method::GET, path).timeout(PIECE_TIMEOUT)).await?;
        Ok(response.bytes().await.map_err(|source| self.unreachable(source))?.to_vec())
    }

    async fn pieces<E: From<ClientError>>(
        &self,
        request: reqwest::RequestBuilder,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut response = self.send(request).await?;
        loop {
            // A large file takes its time, but it moves.
            let piece = tokio::time::timeout(PIECE_TIMEOUT, response.chunk()).await;
            let piece = piece.map_err(|elapsed| self.unreachable(elapsed))?;
            let Some(piece) = piece.map_err(|source| self.unreachable(source))? else { return Ok(()) };
            take(&piece)?;
        }
    }
}

fn tree_content(worker: WorkerIndex, area: TreeArea) -> String {
    format!("/sidecar/workers/{worker}/trees/{}/content", area.as_str())
}
