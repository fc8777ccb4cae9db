//! Keeps a TCP connection on the node that it was opened over, as a cloud's load balancer does, however routes change meanwhile.
//!
//! In: over which nodes each address is reached. Out: rules of nftables that choose one of them for a new connection and mark
//! it with that node, and a routing table for each mark. A connection to a node whose proxies end goes on to them until it is
//! closed; only new ones go elsewhere. Without this a route that changes moves open connections to nodes that know nothing of
//! them.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;

use super::ip;
use super::plan::{Nodes, Routes};

/// The rules of one cluster.
pub(super) struct Flows {
    nodes: Vec<Ipv4Addr>,
    /// What nftables was last told; none before it was told anything.
    told: Option<String>,
    has_tables: bool,
}

impl Flows {
    pub(super) fn new(nodes: &Nodes) -> Flows {
        Flows { nodes: nodes.values().copied().collect(), told: None, has_tables: false }
    }

    /// Makes the rules what they should be; says whether that worked.
    pub(super) async fn settle(&mut self, routes: &Routes) -> bool {
        if !self.has_tables {
            for node in &self.nodes {
                let mark = mark(*node);
                let route = format!("route replace default via {node} table {mark}");
                if !ip(&route).await || !ip(&format!("rule add fwmark {mark} lookup {mark}")).await {
                    return false;
                }
            }
            self.has_tables = true;
        }
        let rules = rules(&self.name(), routes);
        if self.told.as_ref() != Some(&rules) {
            if !nft(&rules).await {
                return false;
            }
            self.told = Some(rules);
        }
        true
    }

    /// Removes everything.
    pub(super) async fn clear(&self) {
        let name = self.name();
        nft(&format!("table ip {name}\ndelete table ip {name}\n")).await;
        for node in &self.nodes {
            ip(&format!("rule del fwmark {}", mark(*node))).await;
        }
    }

    /// Clusters beside each other have nodes, and by that tables, of their own.
    fn name(&self) -> String {
        format!("load-balancer-{:08x}", self.nodes.first().map_or(0, |node| mark(*node)))
    }
}

/// The mark of connections over a node, which is also the number of their routing table.
fn mark(node: Ipv4Addr) -> u32 {
    node.to_bits()
}

/// The rules, all of them in one transaction. A connection attempt is sent again over the same node unless that has gone.
fn rules(name: &str, routes: &Routes) -> String {
    let mut text = format!("table ip {name}\ndelete table ip {name}\ntable ip {name} {{\n chain output {{\n");
    text += "  type route hook output priority mangle\n  meta l4proto != tcp accept\n";
    for (address, nodes) in routes {
        let choices: Vec<String> =
            nodes.iter().enumerate().map(|(at, node)| format!("{at} : {:#x}", mark(*node))).collect();
        _ = writeln!(
            text,
            "  ip daddr {address} ct state new ct mark set jhash ip saddr . tcp sport . ip daddr . tcp dport mod {} map {{ {} }}",
            choices.len(),
            choices.join(", ")
        );
        _ = writeln!(text, "  ip daddr {address} ct mark != 0 meta mark set ct mark");
    }
    text + " }\n}\n"
}

async fn nft(rules: &str) -> bool {
    let mut command = tokio::process::Command::new("nft");
    let child = command.args(["-f", "-"]).stdin(Stdio::piped()).kill_on_drop(true).spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut input) = child.stdin.take()
        && input.write_all(rules.as_bytes()).await.is_err()
    {
        return false;
    }
    child.wait().await.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_gets_one_of_the_nodes_and_an_open_one_keeps_its_own() {
        let [first, second] = [11, 12].map(|last| Ipv4Addr::new(198, 18, 128, last));
        let address = Ipv4Addr::new(198, 18, 137, 1);
        let both = rules("t", &Routes::from([(address, [first, second].into())]));
        assert!(both.contains("mod 2 map { 0 : 0xc612800b, 1 : 0xc612800c }"), "{both}");
        assert!(both.contains("ip daddr 198.18.137.1 ct mark != 0 meta mark set ct mark"), "{both}");
        let one = rules("t", &Routes::from([(address, [second].into())]));
        assert!(one.contains("mod 1 map { 0 : 0xc612800c }"), "{one}");
    }
}
