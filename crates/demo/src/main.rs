//! `make demo`: the folder `examples/demo` served by `sesame run` with a real Envoy and three echo backends.
//!
//! Sends a handful of requests, shows for each which backend answered and which object the route came from, corrects the one
//! mistake in the folder, and shows when the change arrives. On a terminal it then stays up for the user's own requests. It uses
//! loopback and ports that the system picks, so it runs anywhere and beside anything.

mod client;

use std::fs;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use echo::Echo;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// How long anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait before something is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// What is asked, and why.
const REQUESTS: [(&str, &str, &str); 10] = [
    ("http", "shop.example.com", "/"),
    ("http", "SHOP.example.com", "/cart/7"),
    ("http", "api.example.com", "/v1/orders"),
    ("https", "api.example.com", "/v1/orders"),
    ("http", "acme.tenants.example.com", "/"),
    ("http", "orders.example.com", "/7"),
    ("http", "orders.example.com", "/old/7"),
    ("http", "mistake.example.com", "/good"),
    ("http", "mistake.example.com", "/bad"),
    ("http", "nobody.example.com", "/"),
];

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let files = folder.path().join("objects");
    let mut backends = Vec::new();
    for name in ["front", "cart", "api"] {
        backends.push(Echo::builder().name(name).http((Ipv4Addr::LOCALHOST, 0).into()).start().await?);
    }
    let ports: Vec<u16> = backends.iter().map(|backend| backend.http().port()).collect();
    copy_with_ports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo"), &files, &ports)?;

    println!("$ sesame run -f examples/demo\n");
    let log = folder.path().join("access.log");
    let [http, https, stats] = free_addresses()?;
    let mut sesame = start(&files, &log, [http, https, stats])?;
    let ready = eventually("Envoy to be ready", async || ready(stats).await);
    tokio::select! {
        ready = ready => ready?,
        ended = sesame.wait() => bail!("sesame run ended: {}", ended?),
    }

    let mut answers = Vec::new();
    for (scheme, host, path) in REQUESTS {
        answers.push(ask(scheme, host, path, http, https).await?);
    }
    show(&answers, &origins(&log, REQUESTS.len()).await?);
    mend(&files, http).await?;
    if std::io::stdout().is_terminal() {
        println!("\nIt stays up: edit the files in {}, and try", files.display());
        println!("  curl -H 'Host: shop.example.com' http://{http}/\nCtrl-C ends it.");
        tokio::signal::ctrl_c().await?;
    }
    end(sesame).await
}

/// The program that was built beside this one.
fn program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("sesame"))
}

/// Tries until it works, or gives the last error when it has taken too long.
async fn eventually<T>(what: &str, mut attempt: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        match attempt().await {
            Ok(found) => return Ok(found),
            Err(error) if begun.elapsed() > TIMEOUT => return Err(error.context(format!("waited in vain for {what}"))),
            Err(_) => sleep(RETRY).await,
        }
    }
}

fn start(files: &Path, log: &Path, [http, https, stats]: [SocketAddr; 3]) -> Result<Child> {
    Command::new(program()?)
        .args(["--log", "warn", "run", "--address", "127.0.0.1"])
        .args(["--http", &http.port().to_string(), "--https", &https.port().to_string()])
        .args(["--stats", &stats.port().to_string(), "--access-log-format", "json"])
        .arg("--access-log")
        .arg(log)
        .arg("-f")
        .arg(files)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start sesame")
}

/// Copies the folder; the ports that stand in it become those that the backends have.
fn copy_with_ports(from: &Path, to: &Path, ports: &[u16]) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let mut text = fs::read_to_string(entry.path())?;
        for (index, port) in ports.iter().enumerate() {
            text = text.replace(&format!("127.0.0.1:{}", 18081 + index), &format!("127.0.0.1:{port}"));
        }
        fs::write(to.join(entry.file_name()), text)?;
    }
    Ok(())
}

fn free_addresses<const N: usize>() -> Result<[SocketAddr; N]> {
    let held: Vec<TcpListener> =
        (0..N).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    let addresses: Vec<SocketAddr> = held.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
    addresses.try_into().ok().context("as many addresses as were asked for")
}

async fn ready(stats: SocketAddr) -> Result<()> {
    let status = client::get(stats, false, "localhost", "/ready").await?.status;
    if status == 200 { Ok(()) } else { bail!("Envoy answers {status}") }
}

/// One request and what came of it.
struct Exchange {
    request: String,
    status: u16,
    answered: String,
}

async fn ask(scheme: &str, host: &str, path: &str, http: SocketAddr, https: SocketAddr) -> Result<Exchange> {
    let is_tls = scheme == "https";
    let answer = client::get(if is_tls { https } else { http }, is_tls, host, path).await?;
    let answered = match (answer.backend, answer.location) {
        (Some(backend), _) => format!("backend {backend}"),
        (None, Some(location)) => format!("go to {location}"),
        (None, None) => "Envoy itself".to_owned(),
    };
    Ok(Exchange { request: format!("{scheme}://{host}{path}"), status: answer.status, answered })
}

/// Which object each request was answered by, from the access log.
async fn origins(log: &Path, count: usize) -> Result<Vec<String>> {
    let lines = eventually("the access log", async || {
        let text = fs::read_to_string(log)?;
        let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        if lines.len() < count { bail!("{} of {count} lines are there", lines.len()) } else { Ok(lines) }
    });
    let word = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let origin = |line: &Value| match word(line, "origin_name") {
        name if name.is_empty() => "none".to_owned(),
        name => format!("{} {}/{name}", word(line, "origin_kind"), word(line, "origin_namespace")),
    };
    Ok(lines.await?.iter().map(origin).collect())
}

fn show(answers: &[Exchange], origins: &[String]) {
    println!("\n{:<42} {:<6} {:<46} configured by", "request", "status", "answered by");
    for (asked, origin) in answers.iter().zip(origins) {
        println!("{:<42} {:<6} {:<46} {origin}", asked.request, asked.status, asked.answered);
    }
}

/// Corrects the port in the file with the mistake, and waits until the path works.
async fn mend(files: &Path, http: SocketAddr) -> Result<()> {
    let file = files.join("mistake.yaml");
    let text = fs::read_to_string(&file)?.replace("number: 8081", "number: 80");
    println!("\n$ sed -i 's/8081/80/' examples/demo/mistake.yaml\n");
    let begun = Instant::now();
    fs::write(&file, text)?;
    loop {
        match client::get(http, false, "mistake.example.com", "/bad").await?.status {
            200 => break,
            503 if begun.elapsed() < TIMEOUT => {}
            other => bail!("mistake.example.com/bad answers {other}"),
        }
    }
    let took = begun.elapsed().as_secs_f64() * 1000.0;
    println!("http://mistake.example.com/bad answers 200, {took:.0} ms after the file was written");
    Ok(())
}

async fn end(mut sesame: Child) -> Result<()> {
    let pid = sesame.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    }
    let ended = sesame.wait().await?;
    if ended.success() { Ok(()) } else { bail!("sesame run ended: {ended}") }
}
