//! The commands of a page, one after the other as a reader types them, against a real Envoy.
//!
//! A line that begins with `$ ` is a command, the lines below it are what it prints. Only the commands that pages use are
//! understood:
//!
//! | command | what is done |
//! |---|---|
//! | `mkdir NAME` | makes a folder |
//! | `sesame … &` | starts the program; each line below appears in what it prints |
//! | `sesame …` | runs the program to its end; each line below is one that it prints |
//! | `curl -sI [-k] [--cacert FILE] [-H 'name: value'] URL` | a HEAD request: the first line has the status, the others are headers of the answer |
//!
//! A line `…` stands for anything. A block marked `file=` writes that file where it stands on the page, so an example and its
//! correction are two blocks. Requests are repeated until the answer is the one on the page: a change takes some milliseconds. The test
//! makes the certificate that the page makes with openssl.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use http::Method;
use testbed::certs::Ca;
use testbed::process::{Command, Process};
use testbed::{Client, Net, StateDir, eventually};
use tokio::net::TcpStream;

use crate::page::{Block, Page};

const LIMIT: Duration = Duration::from_secs(30);

/// What the commands of a page share.
struct Steps {
    state: StateDir,
    /// Signs the certificate of the page.
    ca: Ca,
    started: Vec<Process>,
}

/// Takes every step of a page; says how many commands there were.
pub async fn take(page: &Page) -> usize {
    let mut steps = Steps { state: StateDir::new("steps").unwrap(), ca: Ca::new("steps"), started: Vec::new() };
    let mut commands = 0;
    for block in &page.blocks {
        if let Some(name) = block.file() {
            if block.text.contains("projectsesame.io/pem-files") {
                steps.write_certificate(&Path::new(name).with_file_name("certs"));
            }
            fs::write(steps.state.path().join(name), &block.text).unwrap();
        } else if block.marks.first().is_some_and(|word| word == "console") {
            for (command, printed) in parse(block) {
                let place = format!("{}:{}: {command}", page.name, block.line);
                steps.run(&place, &command, &printed).await;
                commands += 1;
            }
        }
    }
    steps.is_on_loopback_alone().await;
    commands
}

/// The commands of a block, each with what it prints.
fn parse(block: &Block) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in block.text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, printed))) if line.trim() != "…" && !line.trim().is_empty() => {
                printed.push(line.to_owned());
            }
            _ => {}
        }
    }
    commands
}

impl Steps {
    async fn run(&mut self, place: &str, command: &str, printed: &[String]) {
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match &words[..] {
            ["mkdir", name] => fs::create_dir(self.state.path().join(name)).unwrap(),
            ["sesame", args @ .., "&"] => {
                let process = self.sesame(args).start_in(&self.state).unwrap();
                for line in printed {
                    process.expect_line(line.trim(), LIMIT).await.unwrap();
                }
                self.started.push(process);
            }
            ["sesame", args @ ..] => {
                let process = self.sesame(args).start_in(&self.state).unwrap();
                process.exited().await.unwrap();
                let text = process.log().text();
                for line in printed {
                    assert!(
                        text.lines().any(|found| found.trim_end() == line.trim_end()),
                        "{place}: no `{line}` in\n{text}"
                    );
                }
                self.started.push(process);
            }
            ["curl", args @ ..] => self.curl(place, args, printed).await,
            _ => panic!("{place}: a command that the test does not know"),
        }
    }

    fn sesame(&self, args: &[&str]) -> Command {
        let program = Command::new(env!("CARGO_BIN_EXE_sesame")).name(format!("sesame-{}", self.started.len()));
        program.env("SESAME_ENVOY", parts::program("envoy").unwrap()).current_dir(self.state.path()).args(args)
    }

    fn write_certificate(&self, folder: &Path) {
        let folder = self.state.path().join(folder);
        fs::create_dir(&folder).unwrap();
        let leaf = self.ca.leaf("pay.localhost").make();
        fs::write(folder.join("tls.crt"), leaf.chain_pem()).unwrap();
        fs::write(folder.join("tls.key"), leaf.key_pem()).unwrap();
    }

    /// Nobody else can connect to what `sesame run` serves unless it is told so.
    async fn is_on_loopback_alone(&self) {
        let other = Net::here().unwrap().address();
        for port in [8080, 8443] {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            let refused = TcpStream::connect((other, port)).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{other}:{port}");
        }
    }

    async fn curl(&self, place: &str, args: &[&str], printed: &[String]) {
        let (mut headers, mut url, mut is_verified) = (Vec::new(), None, false);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "-sI" | "-skI" => {}
                "--cacert" => {
                    let file = self.state.path().join(args.next().unwrap());
                    assert!(file.exists(), "{place}: there is no {}", file.display());
                    is_verified = true;
                }
                "-H" => headers.push(args.next().unwrap().split_once(": ").unwrap()),
                other => url = Some(other),
            }
        }
        let (scheme, rest) = url.unwrap().split_once("://").unwrap();
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = authority.split_once(':').unwrap();
        assert!(host.ends_with(".localhost"), "{place}: curl knows the address of names below localhost only");
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, port.parse::<u16>().unwrap()).into();
        let client =
            headers.iter().fold(Client::new(address).host(host), |client, (name, value)| client.header(name, value));
        let client = match scheme {
            "https" if is_verified => client.https().trust(&self.ca),
            "https" => client.https().accept_any(),
            _ => client,
        };
        let look = async || {
            let answer = client.request(Method::HEAD, path).await.map_err(|failure| failure.to_string())?;
            let (status, headers) = printed.split_first().unwrap();
            let code = status.split(' ').nth(1).unwrap();
            if answer.status.as_str() != code {
                return Err(format!("it answers {}", answer.status));
            }
            for header in headers {
                let (name, value) = header.split_once(": ").unwrap();
                if answer.header(name) != Some(value) {
                    return Err(format!("{name} is {:?}", answer.header(name)));
                }
            }
            Ok(())
        };
        eventually(place, LIMIT, look).await.unwrap();
    }
}

/// The words of a command; single quotes keep spaces.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for char in command.chars() {
        match char {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
