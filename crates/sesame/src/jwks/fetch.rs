//! One fetch of a JSON Web Key Set.
//!
//! Whoever may write an object chooses where Sesame asks, so an address is looked at after its name was resolved, and that address is
//! connected to; redirects are not followed; and no more is read than a document may have.

use super::{Limits, LookUp, Turn, tls};
use futures::{StreamExt, stream::FuturesUnordered};
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
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// How many addresses of a name are tried.
const MOST_ADDRESSES: usize = 4;
/// The longest that the next address waits for the one before it, as in RFC 8305.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Fetches the keys; says why there are none, in words that stay the same as long as the reason does.
pub(super) async fn keys(source: &RemoteJwks, spec: &FetchSpec, limits: &Limits, turn: Turn) -> Result<Jwks, String> {
    let (addresses, _turn) = resolved(&source.uri, limits.look_up, turn).await?;
    let addresses = usable(addresses, spec.family, limits.allows)?;
    let stream = connected(&addresses, attempt_delay(limits.fetch_timeout(spec), addresses.len())).await?;
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
        AddressFamily::All => alternating(v6, v4),
    };
    let Some(first) = chosen.first().copied() else {
        return Err("its name has no address of the family that dnsLookupFamily asks for".to_owned());
    };
    let mut allowed: Vec<SocketAddr> = chosen.into_iter().filter(|address| allows(address.ip())).collect();
    allowed.truncate(MOST_ADDRESSES);
    if allowed.is_empty() { Err(address::unreachable(first.ip())) } else { Ok(allowed) }
}

/// One of the first list, one of the second, and so on: of the few that are tried some are of either family.
fn alternating(first: Vec<SocketAddr>, second: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut all: Vec<(usize, SocketAddr)> =
        first.into_iter().enumerate().chain(second.into_iter().enumerate()).collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, address)| address).collect()
}

/// The delay between two attempts to connect: all of them have begun within the first half of the fetch.
fn attempt_delay(timeout: Duration, addresses: usize) -> Duration {
    let addresses = u32::try_from(addresses).unwrap_or(u32::MAX).max(1);
    ATTEMPT_DELAY.min(timeout / 2 / addresses)
}

/// A connection to the first address that accepts one. The next address is tried when the one before it has failed, or has not answered
/// after the delay; the failure is that of the last one in the list.
async fn connected(addresses: &[SocketAddr], delay: Duration) -> Result<TcpStream, String> {
    let mut rest = addresses.iter().copied().enumerate();
    let mut attempts = FuturesUnordered::new();
    let mut failure = (0, String::new());
    loop {
        attempts.extend(rest.next().map(|(index, address)| attempt(index, address)));
        tokio::select! {
            Some(ended) = attempts.next() => match ended {
                Ok(stream) => return Ok(stream),
                Err(why) => failure = failure.max(why),
            },
            () = sleep(delay), if rest.len() > 0 => {}
            else => return Err(failure.1),
        }
    }
}

/// Connects to the address with this place in the list.
async fn attempt(index: usize, address: SocketAddr) -> Result<TcpStream, (usize, String)> {
    let connected = TcpStream::connect(address).await;
    connected.map_err(|error| (index, format!("cannot connect to {address}: {}", error.kind())))
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
    use tokio::net::{TcpListener, TcpSocket};
    use tokio::time::timeout;

    fn addresses(ips: &[&str]) -> Vec<SocketAddr> {
        let parsed = ips.iter().map(|ip| ip.parse::<IpAddr>().expect("the test writes addresses"));
        parsed.map(|ip| SocketAddr::new(ip, 443)).collect()
    }

    #[test]
    fn the_addresses_of_the_family_are_asked() {
        use AddressFamily::{All, Auto, V4, V6};
        let both = ["192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2"];
        let (v4, v6) = (["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]);
        let all = ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2"];
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

    /// An address that answers no attempt to connect, as long as these connections last: as many wait to be accepted as may.
    async fn silent() -> (TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let listener = socket.listen(0).expect("a listener");
        let address = listener.local_addr().expect("its address");
        let mut waiting = Vec::new();
        while let Ok(connected) = timeout(Duration::from_millis(500), TcpStream::connect(address)).await {
            waiting.push(connected.expect("a connection"));
        }
        (listener, waiting)
    }

    #[tokio::test]
    async fn an_address_that_does_not_answer_does_not_use_up_the_time_of_the_others() {
        let (first, _first) = silent().await;
        let (second, _second) = silent().await;
        let good = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let address = |listener: &TcpListener| listener.local_addr().expect("its address");
        let refused = SocketAddr::from(([127, 0, 0, 1], 1));
        for others in [vec![address(&first)], vec![address(&first), refused, address(&second)]] {
            let all: Vec<SocketAddr> = others.into_iter().chain([address(&good)]).collect();
            let delay = attempt_delay(Duration::from_secs(2), all.len());
            let found = timeout(Duration::from_secs(20), connected(&all, delay)).await.expect("it connects in time");
            let peer = found.expect("one address answers").peer_addr().expect("its address");
            assert_eq!(peer, address(&good), "{all:?}");
        }
        let failure = connected(&[refused, refused], Duration::from_secs(20)).await.expect_err("nobody listens");
        assert!(failure.contains("cannot connect to 127.0.0.1:1"), "{failure}");
    }

    #[test]
    fn every_address_is_tried_within_the_first_half_of_a_fetch() {
        for (timeout, addresses, delay) in [(1000, 4, 125), (1000, 1, 250), (30_000, 4, 250), (100, 2, 25)] {
            assert_eq!(attempt_delay(Duration::from_millis(timeout), addresses), Duration::from_millis(delay));
        }
    }
}
