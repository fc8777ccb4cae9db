//! A real Envoy that authenticates with a token, which is renewed while it runs.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use envoy::bootstrap::{Tls, Token};
use model::FleetName;
use parking_lot::Mutex;
use testbed::{Backend, Client, Net, eventually};
use xds::{Authenticating, Authenticator, Fleet, TokenError, VerifiedToken};

use crate::bed::{Replica, Secrets, TIMEOUT, address, launch};
use crate::world::{hosts, serving};

/// Takes one token, and remembers what it was shown.
#[derive(Debug, Default)]
struct Only {
    token: Mutex<String>,
    shown: Mutex<Vec<String>>,
}

impl Authenticator for Only {
    fn authenticate<'a>(&'a self, token: &'a str) -> Authenticating<'a> {
        self.shown.lock().push(token.to_owned());
        let verified = match token == *self.token.lock() {
            true => Ok(VerifiedToken {
                fleet: Fleet::named("team", "a"),
                expires: SystemTime::now() + Duration::from_secs(3600),
            }),
            false => Err(TokenError::Refused("another is wanted".to_owned())),
        };
        Box::pin(std::future::ready(verified))
    }
}

/// Writes a token as the kubelet does: a folder that a link is swung to.
fn project(volume: &Path, token: &str) {
    let data = volume.join(format!("..{token}"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("token"), token).unwrap();
    symlink(&data, volume.join("..data_tmp")).unwrap();
    std::fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    if !volume.join("token").exists() {
        symlink("..data/token", volume.join("token")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_shows_its_token_and_the_next_one_when_it_is_renewed() {
    let a = Backend::start("a").await.unwrap();
    let secrets = Secrets::for_fleet(None);
    let authenticator = Arc::new(Only::default());
    *authenticator.token.lock() = "first".to_owned();
    let replica = Replica::start_with_tokens(address(), secrets.server_files(), authenticator.clone());
    let at = Net::here().unwrap().socket(80);
    let hosts = hosts(2);
    replica.publish_to(Fleet::named("team", "a"), serving(at, &hosts, a.http()));
    let volume = tempfile::tempdir().unwrap();
    project(volume.path(), "first");
    let tls = Tls::Token(Token {
        ca: std::fs::read_to_string(secrets.server_files().ca).unwrap(),
        ca_expirations: vec![1_924_992_000, 1_956_528_000],
        file: volume.path().join("token"),
        resources_dir: volume.path().join("resources"),
    });
    let envoy = launch(replica.address, Some(tls), Some(FleetName::new("team", "a"))).await;
    envoy.ready().await.unwrap();
    assert_eq!(Client::new(at).host(&hosts[0]).get("/").await.unwrap().status.as_u16(), 200);

    // The next stream has the next token, although Envoy was not restarted.
    project(volume.path(), "second");
    *authenticator.token.lock() = "second".to_owned();
    replica.server.disconnect(&Fleet::named("team", "a"));
    let connected = async || match authenticator.shown.lock().last().map(String::as_str) {
        Some("second") => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("the renewed token", TIMEOUT, connected).await.unwrap();
    let joined = async || match replica.server.acks(&Fleet::named("team", "a")).unwrap().clients().len() {
        1 => Ok(()),
        clients => Err(clients),
    };
    eventually("the stream with it", TIMEOUT, joined).await.unwrap();
    let [client] = &replica.server.acks(&Fleet::named("team", "a")).unwrap().clients()[..] else { panic!("one") };
    assert_eq!(client.identity.ca_expirations, [1_924_992_000, 1_956_528_000]);
    assert_eq!(Client::new(at).host(&hosts[1]).get("/").await.unwrap().status.as_u16(), 200, "and it served all along");
}
