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
//! | `curl -sI [-k] [-H 'name: value'] URL` | a HEAD request: the first line has the status, the others are headers of the answer |
//!
//! A line `…` stands for anything. A block marked `file=` writes that file where it stands on the page, so an example and its
//! correction are two blocks. Requests are repeated until the answer is the one on the page: a change takes some milliseconds.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use http::Method;
use testbed::process::{Command, Process};
use testbed::{Client, StateDir, eventually};

use crate::page::{Block, Page};

const LIMIT: Duration = Duration::from_secs(30);

/// Takes every step of a page; says how many commands there were.
pub async fn take(page: &Page) -> usize {
    let state = StateDir::new("steps").unwrap();
    let mut started = Vec::new();
    let mut commands = 0;
    for block in &page.blocks {
        if let Some(name) = block.file() {
            fs::write(state.path().join(name), &block.text).unwrap();
        } else if block.marks.first().is_some_and(|word| word == "console") {
            for (command, printed) in parse(block) {
                let place = format!("{}:{}: {command}", page.name, block.line);
                run(&place, &command, &printed, &state, &mut started).await;
                commands += 1;
            }
        }
    }
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

async fn run(place: &str, command: &str, printed: &[String], state: &StateDir, started: &mut Vec<Process>) {
    let words = words(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        ["mkdir", name] => fs::create_dir(state.path().join(name)).unwrap(),
        ["sesame", args @ .., "&"] => {
            let process = sesame(args, started.len(), state.path()).start_in(state).unwrap();
            for line in printed {
                process.expect_line(line.trim(), LIMIT).await.unwrap();
            }
            started.push(process);
        }
        ["sesame", args @ ..] => {
            let process = sesame(args, started.len(), state.path()).start_in(state).unwrap();
            process.exited().await.unwrap();
            let text = process.log().text();
            for line in printed {
                assert!(
                    text.lines().any(|found| found.trim_end() == line.trim_end()),
                    "{place}: no `{line}` in\n{text}"
                );
            }
            started.push(process);
        }
        ["curl", args @ ..] => curl(place, args, printed).await,
        _ => panic!("{place}: a command that the test does not know"),
    }
}

fn sesame(args: &[&str], number: usize, folder: &Path) -> Command {
    let program = Command::new(env!("CARGO_BIN_EXE_sesame")).name(format!("sesame-{number}"));
    program.env("SESAME_ENVOY", parts::program("envoy").unwrap()).current_dir(folder).args(args)
}

async fn curl(place: &str, args: &[&str], printed: &[String]) {
    let (mut headers, mut url) = (Vec::new(), None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "-sI" | "-skI" => {}
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
    let client = if scheme == "https" { client.https().accept_any() } else { client };
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
