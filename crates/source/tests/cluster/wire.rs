//! The wire between us and the API server, which can be cut without either of them knowing before.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use testbed::{ApiServer, Net};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Carries connections to an API server.
pub struct Wire {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    current: Arc<parking_lot::Mutex<CancellationToken>>,
}

impl Wire {
    pub async fn to(api: &ApiServer) -> Wire {
        let (address, to) = (Net::here().unwrap().socket(6443), api.address());
        let listener = TcpListener::bind(address).await.unwrap();
        let is_cut = Arc::new(AtomicBool::new(false));
        let current = Arc::new(parking_lot::Mutex::new(CancellationToken::new()));
        let (cut, token) = (is_cut.clone(), current.clone());
        tokio::spawn(async move {
            while let Ok((mut here, _)) = listener.accept().await {
                if cut.load(Ordering::SeqCst) {
                    continue;
                }
                let token = token.lock().clone();
                tokio::spawn(async move {
                    let Ok(mut there) = TcpStream::connect(to).await else { return };
                    let carried = copy_bidirectional(&mut here, &mut there);
                    tokio::select! { _ = carried => {}, () = token.cancelled() => {} }
                });
            }
        });
        Wire { address, is_cut, current }
    }

    /// A client with all rights at the other end.
    pub fn client(&self, api: &ApiServer) -> kube::Client {
        let text = std::fs::read_to_string(api.kubeconfig().unwrap()).unwrap();
        let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).unwrap();
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = format!("https://{}", self.address).into();
        cluster["tls-server-name"] = "kubernetes".into();
        let kubeconfig: kube::config::Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
        // It names no file and no program, so there is nothing to wait for.
        let mut config = config.now_or_never().unwrap().unwrap();
        config.default_retry = false;
        config.try_into().unwrap()
    }

    /// Cuts every connection, and refuses new ones.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.current.lock().cancel();
    }

    /// Carries again.
    pub fn mend(&self) {
        *self.current.lock() = CancellationToken::new();
        self.is_cut.store(false, Ordering::SeqCst);
    }
}
