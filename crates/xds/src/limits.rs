//! How much one client may ask of the server, and how long the server waits for one.

use std::time::Duration;

/// The bounds of one stream.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a route waits for its clusters to warm and a listener for its scopes. Long enough for a first round of
    /// health checks, short enough not to be noticed.
    pub warming_timeout: Duration,
    /// How long a call that a filter makes may be under way when the filter changes: a cluster that it called is removed after that.
    pub filter_calls: Duration,
    /// How long a client that is back may be silent before it counts as having subscribed to all it wants. Envoy may hold
    /// back its subscription to clusters for 15 seconds, while one of them warms.
    pub inventory_timeout: Duration,
    /// How many names one stream may subscribe to or list, over all types.
    pub names: usize,
    /// How long a name may be, in bytes.
    pub name_length: usize,
    /// How many names that no table lists may be resolved for one client, and for one resource of it; the ones not
    /// asked for longest make room.
    pub aliases: usize,
    /// As [`Limits::aliases`], for the names that lead to one and the same resource.
    pub aliases_per_resource: usize,
    /// How many names that a [`Resolver`](crate::Resolver) is asked about, and that lead nowhere, are remembered for one
    /// client, to be sent when they come. The ones not asked for longest are forgotten.
    pub absent: usize,
    /// How many cluster responses may be unanswered at once. Envoy withholds their ACK while anything warms, so this is
    /// a bound on memory, not on speed.
    pub cluster_flights: usize,
    /// How many responses with a secret may be unanswered at once; each has one.
    pub secret_flights: usize,
    /// How much of the text of a rejection is kept.
    pub rejection_text: usize,
    /// How large a response may be that need not be whole: what a client asked for by name, and changes. The rest follows
    /// when it was answered. One resource is never split.
    pub response_bytes: usize,
    /// How large a request may be; 50,000 names with their versions take about 5 MB.
    pub request_bytes: usize,
    /// How large a node may be.
    pub node_bytes: usize,
    /// How many requests a client may send that no response called for: at once, and per second in the long run.
    pub request_burst: u32,
    /// See [`Limits::request_burst`].
    pub requests_per_second: u32,
    /// How many requests about names that a [`Resolver`](crate::Resolver) is asked about are read from one client in a second.
    /// Visitors cause them, so the client is not cut off for them: what is more waits on the wire.
    pub resolved_per_second: u32,
    /// The longest pause in receiving a client's first request, and in sending it responses.
    pub client_timeout: Duration,
    /// Deadline for the whole first request of a stream. It may list every name there is, and thousands of clients may send theirs at
    /// once; without a deadline, a client that sends a byte now and then would keep its stream.
    pub first_request_timeout: Duration,
    /// The same deadline for clients of the fleet of one object. Its owner may not be the operator, and what has arrived of the request
    /// takes room that other such fleets share.
    pub named_first_request_timeout: Duration,
    /// How long a client waits for the first snapshot of its fleet if its first request takes some of
    /// [`Config::waiting_bytes`](crate::Config). Then it gets `UNAVAILABLE` and comes again: clients of a fleet that is never published
    /// must not keep others out.
    pub first_snapshot_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            warming_timeout: Duration::from_secs(3),
            filter_calls: Duration::from_secs(2),
            inventory_timeout: Duration::from_secs(20),
            names: 400_000,
            name_length: 4096,
            aliases: 4096,
            aliases_per_resource: 1024,
            absent: 1024,
            cluster_flights: 1024,
            secret_flights: 64,
            rejection_text: 4096,
            response_bytes: 32 << 20,
            request_bytes: 32 << 20,
            node_bytes: 64 << 10,
            request_burst: 20_000,
            requests_per_second: 1000,
            resolved_per_second: 20_000,
            client_timeout: Duration::from_secs(30),
            first_request_timeout: Duration::from_secs(300),
            named_first_request_timeout: Duration::from_secs(60),
            first_snapshot_timeout: Duration::from_secs(120),
        }
    }
}
