//! One fetch of a JSON Web Key Set.
//!
//! Whoever may write an object chooses where Sesame asks, so an address is looked at after its name was resolved, and that address is
//! connected to; redirects are not followed; and no more is read than a document may have.

use super::{Limits, LookUp, Turn, tls};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use model::jwt::{AddressFamily, Jwks, JwksUri, RemoteJwks};
use pipeline::FetchSpec;
use resolve::{address, jwks};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// How many addresses of a name are tried.
const MOST_ADDRESSES: usize = 4;

/// Fetches the keys; says why there are none, in words that stay the same as long as the reason does.
pub(super) async fn keys(source: &RemoteJwks, spec: &FetchSpec, limits: &Limits, turn: Turn) -> Result<Jwks, String> {
    let (addresses, _turn) = resolved(&source.uri, limits.look_up, turn).await?;
    let addresses = usable(addresses, spec.family, limits.allows)?;
    let stream = connected(&addresses).await?;
    let document = match tls::connector(source, spec)? {
        None => document(stream, &source.uri).await?,
        Some((connector, name)) => {
            let secured = connector.connect(name, stream).await;
            document(secured.map_err(|error| format!("the TLS handshake failed: {error}"))?, &source.uri).await?
        }
    };
    jwks::parse(&document).map_err(|why| format!("the document {why}"))
}

/// The addresses of the server. A look-up takes a thread for as long as it lasts, also when nobody waits for it any more: the turn
/// lasts as long.
async fn resolved(uri: &JwksUri, look_up: LookUp, turn: Turn) -> Result<(Vec<SocketAddr>, Turn), String> {
    if let Ok(address) = uri.host.parse::<IpAddr>() {
        return Ok((vec![SocketAddr::new(address, uri.port)], turn));
    }
    let (host, port) = (uri.host.clone(), uri.port);
    let looked_up = tokio::task::spawn_blocking(move || (look_up(&host, port), turn));
    match looked_up.await {
        Ok((Ok(found), turn)) => Ok((found, turn)),
        Ok((Err(_), _)) => Err(format!("the name {} cannot be resolved", uri.host)),
        Err(_) => Err("the look-up of its name was cancelled".to_owned()),
    }
}

/// The addresses that the system's resolver gives.
pub(super) fn system_look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// The addresses of the family that may be asked.
fn usable(
    found: Vec<SocketAddr>,
    family: AddressFamily,
    allows: fn(IpAddr) -> bool,
) -> Result<Vec<SocketAddr>, String> {
    let (v4, v6): (Vec<_>, Vec<_>) = found.into_iter().partition(SocketAddr::is_ipv4);
    let chosen = match family {
        AddressFamily::V4 => v4,
        AddressFamily::V6 => v6,
        AddressFamily::Auto if v6.is_empty() => v4,
        AddressFamily::Auto => v6,
        AddressFamily::All => v6.into_iter().chain(v4).collect(),
    };
    let Some(first) = chosen.first().copied() else {
        return Err("its name has no address of the family that dnsLookupFamily asks for".to_owned());
    };
    let mut allowed: Vec<SocketAddr> = chosen.into_iter().filter(|address| allows(address.ip())).collect();
    allowed.truncate(MOST_ADDRESSES);
    if allowed.is_empty() { Err(address::unreachable(first.ip())) } else { Ok(allowed) }
}

async fn connected(addresses: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut failure = String::new();
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = format!("cannot connect to {address}: {}", error.kind()),
        }
    }
    Err(failure)
}

/// The body of the answer.
async fn document<S>(stream: S, uri: &JwksUri) -> Result<Bytes, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| format!("the HTTP exchange failed: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::get(&*uri.path)
        .header(header::HOST, uri.authority())
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("sesame/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())
        .map_err(|error| format!("its path cannot be asked for: {error}"))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        match response.status() {
            StatusCode::OK => {}
            status if status.is_redirection() => {
                return Err(format!("the answer is {status}; redirects are not followed"));
            }
            status => return Err(format!("the answer is {status}")),
        }
        let body = Limited::new(response.into_body(), jwks::LONGEST).collect().await;
        let body = body.map_err(|_| format!("the document ended early or is longer than {} bytes", jwks::LONGEST))?;
        Ok(body.to_bytes())
    };
    // Both end with this function, so nothing of it is left behind.
    tokio::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        answer = &mut exchange => answer,
        // What was read before the end may be the whole answer.
        _ = &mut connection => exchange.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(ips: &[&str]) -> Vec<SocketAddr> {
        let parsed = ips.iter().map(|ip| ip.parse::<IpAddr>().expect("the test writes addresses"));
        parsed.map(|ip| SocketAddr::new(ip, 443)).collect()
    }

    #[test]
    fn the_addresses_of_the_family_are_asked() {
        use AddressFamily::{All, Auto, V4, V6};
        let both = ["192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2"];
        let (v4, v6) = (["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]);
        let all = ["2001:db8::1", "2001:db8::2", "192.0.2.1", "192.0.2.2"];
        for (found, family, expected) in [
            (&both[..], V4, &v4[..]),
            (&both, V6, &v6),
            (&both, Auto, &v6),
            (&both, All, &all),
            (&v4, Auto, &v4),
            (&v4, All, &v4),
        ] {
            let usable = usable(addresses(found), family, address::is_reachable);
            assert_eq!(usable, Ok(addresses(expected)), "{family:?} of {found:?}");
        }
        for (found, family) in [(&v4[..], V6), (&v6, V4), (&[], Auto)] {
            let usable = usable(addresses(found), family, address::is_reachable);
            let why = usable.expect_err("there is no address of the family");
            assert!(why.contains("no address of the family"), "{family:?} of {found:?}: {why}");
        }
    }

    /// One that may not be asked does not make up for the family: with `auto`, IPv6 was chosen.
    #[test]
    fn addresses_that_may_not_be_asked_are_left_out_and_no_more_than_a_few_are_tried() {
        let usable = |found: &[&str], family| usable(addresses(found), family, address::is_reachable);
        assert_eq!(usable(&["127.0.0.1", "192.0.2.1"], AddressFamily::V4), Ok(addresses(&["192.0.2.1"])));
        for (found, family, named) in [
            (["192.0.2.1", "::1"], AddressFamily::Auto, "::1"),
            (["169.254.169.254", "2001:db8::1"], AddressFamily::V4, "169.254.169.254"),
        ] {
            assert_eq!(usable(&found, family), Err(address::unreachable(addresses(&[named])[0].ip())), "{found:?}");
        }
        let many: Vec<String> = (1..=9).map(|last| format!("2001:db8::{last}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(usable(&many, AddressFamily::V6), Ok(addresses(&many[..MOST_ADDRESSES])));
    }
}
