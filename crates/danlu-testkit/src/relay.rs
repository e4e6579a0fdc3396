//! A way to a server that stays the same when the server moves, and that can be cut.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on to wherever it leads, until it is cut; then nothing, and all that were under way break.
#[derive(Debug)]
pub struct Relay {
    address: String,
    target: Arc<Mutex<Option<String>>>,
    cuts: watch::Sender<u64>,
}

impl Relay {
    /// Leads nowhere at first.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there are free ports");
        let address = format!("http://{}", listener.local_addr().expect("it listens"));
        let target: Arc<Mutex<Option<String>>> = Arc::default();
        let cuts = watch::Sender::new(0);
        let (towards, cut) = (Arc::clone(&target), cuts.subscribe());
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (towards, mut cut) = (Arc::clone(&towards), cut.clone());
                cut.mark_unchanged();
                tokio::spawn(async move {
                    let far = towards.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    let Some(far) = far else { return };
                    let Ok(mut far) = TcpStream::connect(far).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Relay { address, target, cuts }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Leads to the server at this address, such as `http://127.0.0.1:8765`.
    pub fn lead_to(&self, server: &str) {
        let target = server.split_once("://").map_or(server, |(_, place)| place).to_owned();
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = Some(target);
    }

    /// Leads nowhere from now on.
    pub fn cut(&self) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}
