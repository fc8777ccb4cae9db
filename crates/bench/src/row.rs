//! The rows of the tables: what each is called and counted in. `docs/benchmarks.md` says what each means.

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds; from ten seconds on shown as seconds.
    Milliseconds,
    /// Bytes, shown as kB and MB where that is shorter.
    Bytes,
    /// kB.
    Kilobytes,
    /// A percentage of one core.
    Percent,
    /// A number of things.
    Count,
}

impl Unit {
    /// The figure for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Milliseconds if value >= 10_000.0 => format!("{:.1} s", value / 1000.0),
            Unit::Milliseconds if value >= 100.0 => format!("{value:.0} ms"),
            Unit::Milliseconds => format!("{value:.1} ms"),
            Unit::Bytes if value >= 1e6 => format!("{:.1} MB", value / 1e6),
            Unit::Bytes if value >= 1e4 => format!("{:.1} kB", value / 1e3),
            Unit::Bytes => format!("{value:.0} B"),
            Unit::Kilobytes => format!("{value:.0} kB"),
            Unit::Percent => format!("{value:.2} %"),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name in the JSON file.
    pub key: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// What it is counted in.
    pub unit: Unit,
}

const fn row(key: &'static str, label: &'static str, unit: Unit) -> Row {
    Row { key, label, unit }
}

/// All rows in the order of the tables. Those that a run does not have are left out.
pub const ROWS: &[Row] = &[
    row("cold.first-byte", "cold start: first xDS byte", Unit::Milliseconds),
    row("cold.acked", "cold start: all ACKed", Unit::Milliseconds),
    row("cold.bytes", "cold start: bytes of responses", Unit::Bytes),
    row("cold.first-served", "cold start: first host served", Unit::Milliseconds),
    row("cold.served", "cold start: all hosts served", Unit::Milliseconds),
    row("cold.asking", "  of which requesting every host once", Unit::Milliseconds),
    row("cached.first-byte", "start from the disk cache, no API server: first xDS byte", Unit::Milliseconds),
    row("cached.acked", "start from the disk cache, no API server: all ACKed", Unit::Milliseconds),
    row("cached.edits", "10 edits a second without a disk cache: CPU", Unit::Percent),
    row("cached.edits-written", "10 edits a second with a disk cache: CPU", Unit::Percent),
    row("cached.writes", "  of which writes of the disk cache", Unit::Percent),
    row("metrics.p50", "GET /metrics, p50", Unit::Milliseconds),
    row("metrics.p99", "GET /metrics, p99", Unit::Milliseconds),
    row("new-host.write", "new host: the write itself, p50", Unit::Milliseconds),
    row("new-host.xds.p50", "new host: write → ACK, p50", Unit::Milliseconds),
    row("new-host.xds.p99", "new host: write → ACK, p99", Unit::Milliseconds),
    row("new-host.served.p50", "new host: write → served, p50", Unit::Milliseconds),
    row("new-host.served.p99", "new host: write → served, p99", Unit::Milliseconds),
    row("new-host.cpu", "new host: controller CPU each", Unit::Milliseconds),
    row("new-host.envoy-cpu", "new host: Envoy CPU each", Unit::Milliseconds),
    row("route-edit.write", "route edit: the write itself, p50", Unit::Milliseconds),
    row("route-edit.xds.p50", "route edit: write → ACK, p50", Unit::Milliseconds),
    row("route-edit.xds.p99", "route edit: write → ACK, p99", Unit::Milliseconds),
    row("route-edit.served.p50", "route edit: write → served, p50", Unit::Milliseconds),
    row("route-edit.served.p99", "route edit: write → served, p99", Unit::Milliseconds),
    row("route-edit.cpu", "route edit: controller CPU each", Unit::Milliseconds),
    row("route-edit.envoy-cpu", "route edit: Envoy CPU each", Unit::Milliseconds),
    row("endpoints.write", "endpoint change: the write itself, p50", Unit::Milliseconds),
    row("endpoints.xds.p50", "endpoint change: write → ACK, p50", Unit::Milliseconds),
    row("endpoints.xds.p99", "endpoint change: write → ACK, p99", Unit::Milliseconds),
    row("endpoints.served.p50", "endpoint change: write → served, p50", Unit::Milliseconds),
    row("endpoints.served.p99", "endpoint change: write → served, p99", Unit::Milliseconds),
    row("endpoints.cpu", "endpoint change: controller CPU each", Unit::Milliseconds),
    row("endpoints.envoy-cpu", "endpoint change: Envoy CPU each", Unit::Milliseconds),
    row("provider.write", "provider edit: the write itself, p50", Unit::Milliseconds),
    row("provider.xds.p50", "provider edit: write → ACK, p50", Unit::Milliseconds),
    row("provider.xds.p99", "provider edit: write → ACK, p99", Unit::Milliseconds),
    row("provider.served.p50", "provider edit: write → enforced, p50", Unit::Milliseconds),
    row("provider.served.p99", "provider edit: write → enforced, p99", Unit::Milliseconds),
    row("provider.cpu", "provider edit: controller CPU each", Unit::Milliseconds),
    row("provider.envoy-cpu", "provider edit: Envoy CPU each", Unit::Milliseconds),
    row("storm.write", "1,000 writes: the writes themselves", Unit::Milliseconds),
    row("storm.xds", "1,000 writes: last write → last ACK", Unit::Milliseconds),
    row("storm.served", "1,000 writes: last write → all served", Unit::Milliseconds),
    row("storm.bytes", "1,000 writes: bytes of responses", Unit::Bytes),
    row("storm.cpu", "1,000 writes: controller CPU each", Unit::Milliseconds),
    row("settings.listeners", "changed idle timeout: file → ACK of listeners", Unit::Milliseconds),
    row("settings.served", "changed request timeout: file → requests are held to it", Unit::Milliseconds),
    row("settings.clusters", "changed connect timeout: file → ACK of all clusters", Unit::Milliseconds),
    row("settings.clusters-envoy", "changed connect timeout: file → all replaced in Envoy", Unit::Milliseconds),
    row("settings.failed", "changed timeouts: failed requests", Unit::Count),
    row("restart.listening", "restart: until it listens again", Unit::Milliseconds),
    row("restart.resources", "restart: resources re-sent", Unit::Count),
    row("restart.bytes", "restart: bytes of responses", Unit::Bytes),
    row("restart.envoy-bytes", "restart: bytes on Envoy's connections", Unit::Bytes),
    row("restart.failed", "restart: failed requests", Unit::Count),
    row("clients.connect", "100 clients connect: all have everything", Unit::Milliseconds),
    row("clients.connect-cpu", "100 clients connect: controller CPU", Unit::Milliseconds),
    row("clients.memory", "100 clients: controller memory each", Unit::Kilobytes),
    row("clients.change", "100 clients: one change → the last has it", Unit::Milliseconds),
    row("clients.change-cpu", "100 clients: controller CPU of one change", Unit::Milliseconds),
    row("clients.back", "1,000 clients: restart → all are in step again", Unit::Milliseconds),
    row("unexpected", "unexpected answers", Unit::Count),
];
